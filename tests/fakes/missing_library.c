/* SPDX-License-Identifier: Apache-2.0 */
/* Needs a library that is nowhere. */
#include "tests/fakes/fake.h"

int fakeGone(void);
static muster_status run(Fake* fake, const char* json) {
  (void)json;
  return fakeReport(fake, fakeGone());
}

FAKE_PLUGIN("fake-missing-library", run)
