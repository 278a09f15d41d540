/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one case well and dies in the next one of the same process. */
#include <signal.h>

#include "tests/fakes/fake.h"

static muster_status run(Fake* fake, const char* json) {
  static int calls = 0;
  if (++calls == 2) {
    signal(SIGSEGV, SIG_DFL); /* a sanitizer would turn it into another end */
    raise(SIGSEGV);
  }
  return fakeReport(fake, fakeNumber(json, "value", 1));
}

FAKE_PLUGIN("fake-crash-second", run)
