/* SPDX-License-Identifier: Apache-2.0 */
/* Computes without a word, as a rank does that simulates or analyses much. */
#include <time.h>

#include "tests/fakes/fake.h"

/* kind: milliseconds of CPU time. */
static muster_status run(Fake* fake, const char* json) {
  const double seconds = fakeNumber(json, "kind", 0) / 1000;
  const clock_t begin = clock();
  while ((double)(clock() - begin) / CLOCKS_PER_SEC < seconds) {
  }
  fakeReport(fake, fakeNumber(json, "value", 1));
  return MUSTER_OK;
}

FAKE_PLUGIN("fake-busy", run)
