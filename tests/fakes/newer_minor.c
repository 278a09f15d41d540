/* SPDX-License-Identifier: Apache-2.0 */
/* Needs a newer minor version of the ABI than any host has; its constructor must never run. */
#include "tests/fakes/fake.h"

__attribute__((constructor)) static void load(void) {
  abort();
}
static muster_status run(Fake* fake, const char* json) {
  return fakeReport(fake, fakeNumber(json, "value", 1));
}

FAKE_INFO("fake-newer-minor", MUSTER_PLUGIN_MAGIC, sizeof(muster_plugin_info), MUSTER_ABI_MAJOR, 1000)
FAKE_ENTRY(run)
