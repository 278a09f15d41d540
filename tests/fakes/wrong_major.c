/* SPDX-License-Identifier: Apache-2.0 */
/* Built for another major version of the ABI; its constructor must never run. */
#include "tests/fakes/fake.h"

__attribute__((constructor)) static void load(void) {
  abort();
}
static muster_status run(Fake* fake, const char* json) {
  return fakeReport(fake, fakeNumber(json, "value", 1));
}

FAKE_INFO("fake-wrong-major", MUSTER_PLUGIN_MAGIC, sizeof(muster_plugin_info), MUSTER_ABI_MAJOR + 1, 0)
FAKE_ENTRY(run)
