/* SPDX-License-Identifier: Apache-2.0 */
/* Reports half of its figure and waits to be stopped while the file that FAKE_FIXED names is missing, and
 * all of it once the file is there. The same name with ".told" is a file that says that the figure is out.
 * kind 1: it waits from the second attempt on. */
#define _GNU_SOURCE
#include <unistd.h>

#include "tests/fakes/fake.h"

static muster_status run(Fake* fake, const char* json) {
  const char* fixed = getenv("FAKE_FIXED");
  const double value = fakeNumber(json, "value", 1);
  char told[4096];
  FILE* file;
  if (fixed == NULL || access(fixed, F_OK) == 0) return fakeReport(fake, value);
  fake->host->artifact(fake->host->context, "half.txt", "text/plain", "half", 4);
  fakeReport(fake, value / 2);
  snprintf(told, sizeof told, "%s.told", fixed);
  const int first = access(told, F_OK) != 0;
  file = fopen(told, "w");
  if (file != NULL) fclose(file);
  if (first && fakeNumber(json, "kind", 0) == 1) return MUSTER_OK;
  while (!fake->host->cancelled(fake->host->context)) usleep(10 * 1000);
  return MUSTER_CANCELLED;
}

FAKE_PLUGIN("fake-fixed", run)
