// SPDX-License-Identifier: Apache-2.0
// Hosts of which one has a stuck data line, in what it sends or in what it receives: all that ranks tell each
// other passes through it, also what they say of it. It may be impossible to tell which one it is; it is
// never another.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/cluster/cluster_run.h"

namespace muster::testing {
namespace {

constexpr int kStuckHosts = 4;
constexpr int kStuck = 2;

constexpr const char* kStuckPlan = R"(schema = 1
name = "stuck"
sku = "auto"
backend = "host"

[[stage]]
name = "sweep"
plugin = "collective"
test = "sweep"
scope = "cluster"
ranks = 1
timeout = "60s"
matrix = { op = ["all_reduce", "all_gather", "broadcast", "alltoall"] }
[stage.params]
from = "1 KiB"
to = "64 KiB"
factor = 64
warmup = 1
iterations = 3
sample_time = "0s"
call_timeout = "15s"
)";

class ClusterStuckLine : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const std::string why = Hosts::whyNot(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_P(ClusterStuckLine, IsNeverHeldAgainstAnotherHost) {
  ClusterRun run(kStuckHosts, kStuckPlan, {});
  run.seeOwnInterfaces();
  ProcessOptions stuck;
  stuck.environment["LD_PRELOAD"] = buildDir() / "tests/fakes/gloo/stuck-line.so";
  stuck.environment["MUSTER_FAKE_STUCK_LINE"] = GetParam();
  for (int host = 0; host < kStuckHosts; ++host)
    run.start(host, host, {}, host == kStuck ? stuck : ProcessOptions{});
  run.finish();
  const ProcessResult fleet = run.fleet();
  const auto nodes = run.states();
  for (int host = 0; host < kStuckHosts; ++host) {
    const std::string& state = nodes.at(Hosts::name(host));
    if (host == kStuck)
      EXPECT_NE(state, "accepted") << fleet.out << fleet.err;
    else
      EXPECT_NE(state, "rejected") << fleet.out << fleet.err;
  }
}

INSTANTIATE_TEST_SUITE_P(Lines, ClusterStuckLine,
                         ::testing::Values("sends 21 1", "sends 63 1", "sends 52 0", "receives 29 1"),
                         [](const auto& line) {
                           std::string name = line.param;
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

}  // namespace
}  // namespace muster::testing
