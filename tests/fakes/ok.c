/* SPDX-License-Identifier: Apache-2.0 */
/* A healthy plugin, for the tests that need one: reports its figure, obeys cancelled(), keeps its children
 * none. */
#define _GNU_SOURCE
#include <time.h>

#include "tests/fakes/fake.h"

/* kind: milliseconds to work before the figure. */
static muster_status run(Fake* fake, const char* json) {
  const int steps = (int)fakeNumber(json, "kind", 0) / 10;
  const struct timespec step = {0, 10 * 1000 * 1000};
  for (int i = 0; i < steps; ++i) {
    fakeProgress(fake, (double)i / steps, "working");
    if (fake->host->cancelled(fake->host->context)) return MUSTER_CANCELLED;
    nanosleep(&step, NULL);
  }
  puts("fake-ok prints this");
  return fakeReport(fake, fakeNumber(json, "value", 1));
}

FAKE_PLUGIN("fake-ok", run)
