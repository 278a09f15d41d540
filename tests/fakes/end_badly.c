/* SPDX-License-Identifier: Apache-2.0 */
/* Runs its case well and misbehaves when its library is taken down, after the last case ended. */
#include <signal.h>
#include <unistd.h>

#include "tests/fakes/fake.h"

static void crash(void) {
  signal(SIGSEGV, SIG_DFL); /* a sanitizer would turn it into another end */
  raise(SIGSEGV);
}

/* kind 0: SIGSEGV, 1: hangs, else exits with that code. */
static int kindOfEnd;
static void end(void) {
  if (kindOfEnd == 0) crash();
  if (kindOfEnd == 1) fakeSleepForEver();
  _exit(kindOfEnd);
}

static muster_status run(Fake* fake, const char* json) {
  kindOfEnd = (int)fakeNumber(json, "kind", 0);
  atexit(end);
  return fakeReport(fake, fakeNumber(json, "value", 1));
}

FAKE_PLUGIN("fake-end-badly", run)
