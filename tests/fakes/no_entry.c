/* SPDX-License-Identifier: Apache-2.0 */
/* Says that it is a plugin, but exports no entry function. */
#include "tests/fakes/fake.h"

FAKE_INFO("fake-no-entry", MUSTER_PLUGIN_MAGIC, sizeof(muster_plugin_info), MUSTER_ABI_MAJOR,
          MUSTER_ABI_MINOR)
