/* SPDX-License-Identifier: Apache-2.0 */
/* Reports half of its figure and waits to be stopped while the file that FAKE_FIXED names is missing, and
 * all of it once the file is there. The same name with ".told" is a file that says that the figure is out. */
#define _GNU_SOURCE
#include <unistd.h>

#include "tests/fakes/fake.h"

static muster_status run(Fake* fake, const char* json) {
  const char* fixed = getenv("FAKE_FIXED");
  const double value = fakeNumber(json, "value", 1);
  char told[4096];
  FILE* file;
  if (fixed == NULL || access(fixed, F_OK) == 0) return fakeReport(fake, value);
  fakeReport(fake, value / 2);
  snprintf(told, sizeof told, "%s.told", fixed);
  file = fopen(told, "w");
  if (file != NULL) fclose(file);
  while (!fake->host->cancelled(fake->host->context)) usleep(10 * 1000);
  return MUSTER_CANCELLED;
}

FAKE_PLUGIN("fake-fixed", run)
