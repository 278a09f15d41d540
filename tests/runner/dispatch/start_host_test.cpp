// SPDX-License-Identifier: Apache-2.0
// The rerun command as a shell reads it.
#include "runner/dispatch/start_host.h"

#include <gtest/gtest.h>

#include "tests/support/process.h"

namespace muster {
namespace {

TEST(StartHost, QuotesCommandsForTheShell) {
  EXPECT_EQ(shellCommand({"/bin/muster-host", "--request", "/out/a.json"}),
            "/bin/muster-host --request /out/a.json");
  const std::vector<std::string> nasty{"printf", "%s|", "a b", "it's", "$(echo x)", "", "new\nline"};
  EXPECT_EQ(testing::runProcess({"/bin/sh", "-c", shellCommand(nasty)}).out,
            "a b|it's|$(echo x)||new\nline|");
}

TEST(StartHost, NamesWhatCannotBeStarted) {
  const Result<SpawnedHost> host = spawnHost({"/nowhere/muster-host"});
  ASSERT_FALSE(host.ok());
  EXPECT_EQ(host.error().text().substr(0, 60),
            "/nowhere/muster-host: cannot start muster-host: No such file");
}

}  // namespace
}  // namespace muster
