/* SPDX-License-Identifier: Apache-2.0 */
/* Its name fills the field and has no zero byte. */
#include "tests/fakes/fake.h"

static muster_status run(Fake* fake, const char* json) {
  return fakeReport(fake, fakeNumber(json, "value", 1));
}

#define TEN "aaaaaaaaaa"
FAKE_INFO(TEN TEN TEN TEN TEN TEN "aaaa", MUSTER_PLUGIN_MAGIC, sizeof(muster_plugin_info), MUSTER_ABI_MAJOR,
          0)
FAKE_ENTRY(run)
