/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves a grandchild that holds every descriptor of the rank open, the frames too. */
#define _GNU_SOURCE
#include <signal.h>
#include <unistd.h>

#include "tests/fakes/fake.h"

static muster_status run(Fake* fake, const char* json) {
  if (fork() == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    signal(SIGTERM, SIG_IGN);
    fakeSleepForEver();
  }
  fakeReport(fake, fakeNumber(json, "value", 1));
  raise(SIGKILL);
  return MUSTER_OK;
}

FAKE_PLUGIN("fake-orphan", run)
