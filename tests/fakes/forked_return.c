/* SPDX-License-Identifier: Apache-2.0 */
/* Forks, and lets the child return from run() as well. */
#include <unistd.h>

#include "tests/fakes/fake.h"

static muster_status run(Fake* fake, const char* json) {
  fork();
  return fakeReport(fake, fakeNumber(json, "value", 1));
}

FAKE_PLUGIN("fake-forked-return", run)
