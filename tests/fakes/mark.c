/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the file that FAKE_LOADED names as soon as it is loaded. */
#include "tests/fakes/fake.h"

__attribute__((constructor)) static void mark(void) {
  const char* path = getenv("FAKE_LOADED");
  FILE* file = path == NULL ? NULL : fopen(path, "w");
  if (file != NULL) fclose(file);
}

static muster_status run(Fake* fake, const char* json) {
  return fakeReport(fake, fakeNumber(json, "value", 1));
}

FAKE_PLUGIN("fake-mark", run)
