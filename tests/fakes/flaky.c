/* SPDX-License-Identifier: Apache-2.0 */
/* Reports half of its figure on the first attempt and all of it later. */
#include "tests/fakes/fake.h"

static muster_status run(Fake* fake, const char* json) {
  const double value = fakeNumber(json, "value", 1);
  return fakeReport(fake, fakeNumber(json, "attempt", 1) < 2 ? value / 2 : value);
}

FAKE_PLUGIN("fake-flaky", run)
