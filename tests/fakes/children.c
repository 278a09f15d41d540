/* SPDX-License-Identifier: Apache-2.0 */
/* Starts children that hide in sessions of their own and ignore TERM, then hangs or ends. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fakes/fake.h"

static void startHiddenChild(void) {
  const pid_t middle = fork();
  if (middle != 0) {
    waitpid(middle, NULL, 0);
    return;
  }
  setsid();
  if (fork() != 0) _exit(0); /* the grandchild is nobody's child any more */
  signal(SIGTERM, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  fakeSleepForEver();
}

/* kind 0: children are left behind and the case ends well; 1: hangs with them. */
static muster_status run(Fake* fake, const char* json) {
  for (int i = 0; i < 3; ++i) startHiddenChild();
  if (fork() == 0) fakeSleepForEver();
  fakeProgress(fake, 0.5, "children are there");
  if (fakeNumber(json, "kind", 0) == 1) fakeSleepForEver();
  return fakeReport(fake, fakeNumber(json, "value", 1));
}

FAKE_PLUGIN("fake-children", run)
