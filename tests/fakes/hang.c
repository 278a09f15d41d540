/* SPDX-License-Identifier: Apache-2.0 */
/* Hangs until TERM wakes it, and never looks at cancelled() before. */
#include <unistd.h>

#include "tests/fakes/fake.h"

static muster_status run(Fake* fake, const char* json) {
  (void)json;
  fakeProgress(fake, 0.5, "waiting for a peer");
  pause();
  return fake->host->cancelled(fake->host->context) ? MUSTER_CANCELLED : MUSTER_OK;
}

FAKE_PLUGIN("fake-hang", run)
