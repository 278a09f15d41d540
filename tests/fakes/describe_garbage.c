/* SPDX-License-Identifier: Apache-2.0 */
/* Describes itself with something that is not JSON. */
#include "tests/fakes/fake.h"

#undef FAKE_DESCRIBE
#define FAKE_DESCRIBE "{\"tests\": [oops"
static muster_status run(Fake* fake, const char* json) {
  return fakeReport(fake, fakeNumber(json, "value", 1));
}

FAKE_PLUGIN("fake-describe-garbage", run)
