/* SPDX-License-Identifier: Apache-2.0 */
/* Exports the right symbol with something else in it; its constructor must never run. */
#include "tests/fakes/fake.h"

__attribute__((constructor)) static void load(void) {
  abort();
}
static muster_status run(Fake* fake, const char* json) {
  return fakeReport(fake, fakeNumber(json, "value", 1));
}

FAKE_INFO("fake-wrong-magic", 42, sizeof(muster_plugin_info), MUSTER_ABI_MAJOR, 0)
FAKE_ENTRY(run)
