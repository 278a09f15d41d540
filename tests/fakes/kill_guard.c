/* SPDX-License-Identifier: Apache-2.0 */
/* Kills its own guard, the one process that would clean up after it. */
#define _GNU_SOURCE
#include <signal.h>
#include <unistd.h>

#include "tests/fakes/fake.h"

static muster_status run(Fake* fake, const char* json) {
  (void)json;
  const pid_t guard = getppid();
  if (fork() == 0) {
    setsid();
    signal(SIGTERM, SIG_IGN);
    fakeSleepForEver();
  }
  fakeProgress(fake, 0.5, "killing the guard");
  kill(guard, fakeNumber(json, "kind", 0) == 1 ? SIGSTOP : SIGKILL);
  fakeSleepForEver();
  return MUSTER_OK;
}

FAKE_PLUGIN("fake-kill-guard", run)
