/* SPDX-License-Identifier: Apache-2.0 */
/* Kills its own guard, the one process that would clean up after it; kind 1 stops it instead, and kind 2 keeps it
 * from its work for a second once it has begun to end its rank. */
#define _GNU_SOURCE
#include <signal.h>
#include <unistd.h>

#include "tests/fakes/fake.h"

static pid_t guardOfRank;

static void holdGuard(int signal) {
  (void)signal;
  kill(guardOfRank, SIGSTOP);
  sleep(1);
  kill(guardOfRank, SIGCONT);
}

static muster_status run(Fake* fake, const char* json) {
  (void)json;
  const pid_t guard = guardOfRank = getppid();
  if (fakeNumber(json, "kind", 0) == 2) {
    signal(SIGTERM, holdGuard);
    fakeProgress(fake, 0.5, "waiting for TERM");
    fakeSleepForEver();
  }
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
