/* SPDX-License-Identifier: Apache-2.0 */
/* Claims another size of its information than the ABI gives it. */
#include "tests/fakes/fake.h"

static muster_status run(Fake* fake, const char* json) {
  return fakeReport(fake, fakeNumber(json, "value", 1));
}

FAKE_INFO("fake-wrong-size", MUSTER_PLUGIN_MAGIC, 8, MUSTER_ABI_MAJOR, MUSTER_ABI_MINOR)
FAKE_ENTRY(run)
