/* SPDX-License-Identifier: Apache-2.0 */
/* Dies of SIGSEGV in the middle of a case. */
#include <signal.h>

#include "tests/fakes/fake.h"

/* kind 0: SIGSEGV, else the signal with that number. */
static muster_status run(Fake* fake, const char* json) {
  const int kind = (int)fakeNumber(json, "kind", 0);
  fakeProgress(fake, 0.4, "about to crash");
  puts("last words of fake-crash");
  fflush(stdout);
  if (kind == 0) signal(SIGSEGV, SIG_DFL); /* a sanitizer would turn it into another end */
  raise(kind == 0 ? SIGSEGV : kind);
  return fakeReport(fake, fakeNumber(json, "value", 1));
}

FAKE_PLUGIN("fake-crash", run)
