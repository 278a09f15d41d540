/* SPDX-License-Identifier: Apache-2.0 */
/* Ends each case as the parameter says, with reason and remedy. */
#include "tests/fakes/fake.h"

/* kind: the muster_status to return. */
static muster_status run(Fake* fake, const char* json) {
  const int kind = (int)fakeNumber(json, "kind", MUSTER_ERROR);
  fake->host->error(fake->host->context, "the fake was told to fail", "tell it to succeed");
  return (muster_status)kind;
}

FAKE_PLUGIN("fake-fails", run)
