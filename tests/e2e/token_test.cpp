// SPDX-License-Identifier: Apache-2.0
// MUSTER_TOKEN of a plan that has no need of it: the runner takes it, and no process of the run shows it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <future>
#include <thread>

#include "tests/e2e/muster.h"

namespace muster::testing {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;

TEST(Token, IsInTheEnvironmentOfNoProcessOfARun) {
  const TempDir dir;
  const std::string token = fmt::format("{:032x}", std::hash<std::string>()(dir.path().string()));
  const std::string file = dir.write("plan.toml", fakePlan("fake-hang", "60s"));
  ProcessOptions options;
  options.environment["MUSTER_TOKEN"] = token;
  auto run = std::async(std::launch::async, [&] {
    return runMuster(
        std::vector<std::string>{"run", file, "--out", (dir.path() / "run").string()} + withFakes(), options);
  });
  std::vector<std::string> names;
  std::vector<int> pids;
  while (run.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready) {
    pids = processesWith(dir.path().string());
    names.clear();
    for (const int pid : pids) names.push_back(readWhole(fmt::format("/proc/{}/comm", pid)));
    if (std::count(names.begin(), names.end(), "muster-rank\n") > 0) break;
  }
  EXPECT_THAT(names, Contains("muster\n"));
  ASSERT_THAT(names, Contains("muster-rank\n"));
  EXPECT_THAT(processesWith(token), IsEmpty());
  for (size_t i = 0; i < pids.size(); ++i)
    if (names[i] == "muster\n") kill(pids[i], SIGINT);
  EXPECT_EQ(run.get().exitCode, 130);
}

}  // namespace
}  // namespace muster::testing
