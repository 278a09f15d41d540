/* SPDX-License-Identifier: Apache-2.0 */
/* Hangs and ignores TERM: only KILL ends it. */
#include <signal.h>

#include "tests/fakes/fake.h"

static muster_status run(Fake* fake, const char* json) {
  (void)json;
  signal(SIGTERM, SIG_IGN);
  fakeProgress(fake, 0.5, "ignoring TERM");
  fakeSleepForEver();
  return MUSTER_OK;
}

FAKE_PLUGIN("fake-hang-term", run)
