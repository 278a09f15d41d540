// SPDX-License-Identifier: Apache-2.0
// A straggler among real hosts: all of them look slow in a collective, the fleet names the one that is.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "runner/core/json.h"
#include "tests/cluster/cluster_run.h"
#include "tests/support/quota_group.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;

constexpr int kStragglerHosts = 3;
constexpr int kStraggler = 2;
constexpr double kQuota = 0.03;  ///< of one processor: far less than its share of a full machine

// Nearly twice the median, which is that of the slower one of the two that are well.
constexpr const char* kStragglerPlan = R"(schema = 1
name = "straggler"
sku = "auto"
backend = "host"

[[stage]]
name = "sweep"
plugin = "collective"
test = "sweep"
scope = "cluster"
ranks = 1
timeout = "85s"
[stage.params]
from = "1 KiB"
to = "1 KiB"
placements = ["out_of_place"]
warmup = 1
iterations = 3
sample_time = "0s"
local_compute_probes = 10
[[stage.expect]]
metric = "collective.local_compute_time"
within = "95%"
of = "fleet"
source = "this test"
remedy = "look at its processors"
)";

class ClusterStraggler : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Hosts::whyNot(); !why.empty()) GTEST_SKIP() << why;
  }

  /// Puts the straggler's rank under the quota as soon as it is there: long before it measures itself, since
  /// it has to find the others first.
  static bool slowDown(const ClusterRun& run, const QuotaGroup& quota) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(40);
    while (std::chrono::steady_clock::now() < end) {
      for (const int pid : run.hosts.processes(kStraggler, fmt::format("sweep.rank{}.", kStraggler)))
        if (readWhole(fmt::format("/proc/{}/comm", pid)) == "muster-rank\n") return quota.add(pid);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }

  static double localComputeTime(const ClusterRun& run, int host) {
    for (const Measurement& m : run.stage(host, "sweep").measurements)
      if (m.metric == "collective.local_compute_time") return m.samples.at(0);
    ADD_FAILURE() << "host " << host << " tells no own time\n" << run.details(host, "sweep");
    return 0;
  }

  /// Whether this machine slowed nobody else: those that are well alike, the straggler far from both.
  static bool oneStraggler(const std::vector<double>& seconds) {
    const auto [fast, slow] = std::minmax(seconds.at(0), seconds.at(1));
    return slow < fast * 1.5 && seconds.at(kStraggler) > slow * 3;
  }

  /// Node -> the metric of its own that is too far from the fleet's.
  static std::map<std::string, std::string> missed(const ClusterRun& run) {
    const Json fleet = run.fleetResult();
    std::map<std::string, std::string> nodes;
    for (const Json& miss : fleet.at("deferred_missed")) nodes[miss.at("node")] = miss.at("metric");
    return nodes;
  }
};

TEST_F(ClusterStraggler, IsNamedByTheFleetAndThoseWhoWaitForItAreNot) {
  // A machine that others use may hold up one of the two that are well, too: such a run shows two stragglers.
  constexpr int kTries = 5;
  std::string times;
  for (int attempt = 1; attempt <= kTries; ++attempt) {
    ClusterRun run(kStragglerHosts, kStragglerPlan, {});
    const QuotaGroup quota(kQuota / static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN)));
    if (!quota.ready()) GTEST_SKIP() << "a cpu cgroup cannot be made here";
    run.seeOwnInterfaces();
    run.startAll();
    const bool slowed = slowDown(run, quota);
    run.finish();
    ASSERT_TRUE(slowed) << run.ended(kStraggler).out << run.ended(kStraggler).err;
    std::vector<double> seconds;
    for (int host = 0; host < kStragglerHosts; ++host) {
      EXPECT_EQ(run.ended(host).exitCode, 0) << run.ended(host).out << run.ended(host).err;
      seconds.push_back(localComputeTime(run, host));
      times += fmt::format("try {}, {}: {} s\n", attempt, Hosts::name(host), seconds.back());
    }
    if (!oneStraggler(seconds)) continue;
    const ProcessResult result = run.fleet();
    EXPECT_EQ(result.exitCode, 1) << result.out << result.err << times;
    EXPECT_EQ(
        missed(run),
        (std::map<std::string, std::string>{{Hosts::name(kStraggler), "collective.local_compute_time"}}))
        << result.out << times;
    return;
  }
  FAIL() << "in none of " << kTries << " runs was the straggler the only slow host\n" << times;
}

}  // namespace
}  // namespace muster::testing
