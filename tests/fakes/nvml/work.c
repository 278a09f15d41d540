/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin whose test "works" on no GPU at all: it lets the fake NVML know that work has begun, and takes a
 * moment. What a scenario says of "working" happens then, between two samples of telemetry. */
#define _GNU_SOURCE
#include <time.h>

#include "tests/fakes/fake.h"

static muster_status run(Fake* fake, const char* json) {
  const struct timespec moment = {0, 50 * 1000 * 1000};
  const char* mark = getenv("MUSTER_FAKE_NVML_WORK");
  if (mark != NULL) {
    FILE* file = fopen(mark, "w");
    if (file == NULL) return MUSTER_ERROR;
    fclose(file);
  }
  nanosleep(&moment, NULL);
  return fakeReport(fake, fakeNumber(json, "value", 1));
}

FAKE_PLUGIN("fake-work", run)
