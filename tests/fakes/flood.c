/* SPDX-License-Identifier: Apache-2.0 */
/* Floods stdout and stderr with numbered lines. */
#include "tests/fakes/fake.h"

/* kind: MiB to print. */
static muster_status run(Fake* fake, const char* json) {
  const long lines = (long)fakeNumber(json, "kind", 1) * 16384;
  for (long i = 0; i < lines; ++i) {
    fprintf(stdout, "%062ld\n", i);
    if (i % 4096 == 0) fflush(stdout);
  }
  fflush(stdout);
  fprintf(stderr, "the last line of the flood\n");
  return fakeReport(fake, fakeNumber(json, "value", 1));
}

FAKE_PLUGIN("fake-flood", run)
