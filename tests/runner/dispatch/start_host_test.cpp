// SPDX-License-Identifier: Apache-2.0
// What starting a host reports.
#include "runner/dispatch/start_host.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(StartHost, NamesWhatCannotBeStarted) {
  const Result<SpawnedHost> host = spawnHost({"/nowhere/muster-host"});
  ASSERT_FALSE(host.ok());
  EXPECT_EQ(host.error().text().substr(0, 60),
            "/nowhere/muster-host: cannot start muster-host: No such file");
}

}  // namespace
}  // namespace muster
