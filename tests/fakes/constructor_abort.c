/* SPDX-License-Identifier: Apache-2.0 */
/* Its constructor aborts, so loading it kills the process. */
#include "tests/fakes/fake.h"

__attribute__((constructor)) static void load(void) {
  abort();
}
static muster_status run(Fake* fake, const char* json) {
  return fakeReport(fake, fakeNumber(json, "value", 1));
}

FAKE_PLUGIN("fake-constructor-abort", run)
