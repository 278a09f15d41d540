/* SPDX-License-Identifier: Apache-2.0 */
/* Ends the process with exit code 0 in the middle of a case. */
#include "tests/fakes/fake.h"

/* kind: the exit code. */
static muster_status run(Fake* fake, const char* json) {
  fakeReport(fake, fakeNumber(json, "value", 1));
  exit((int)fakeNumber(json, "kind", 0));
}

FAKE_PLUGIN("fake-exit-early", run)
