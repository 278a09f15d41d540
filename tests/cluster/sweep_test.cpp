// SPDX-License-Identifier: Apache-2.0
// Cluster stages on a part of the hosts: the others wait idle, and hear when the group fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>

#include "tests/cluster/cluster_run.h"

namespace muster::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kSweepHosts = 3;

class ClusterSweep : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Hosts::whyNot(); !why.empty()) GTEST_SKIP() << why;
  }

  /// The walk on one, two and all hosts, and on more than there are.
  static std::string plan(const std::string& params = "") {
    std::string walk = clusterWalk("walk", 3, "40s");
    walk.insert(walk.find("scope ="), "nodes = [1, 2, 5, \"all\"]\nattempts = 2\n");
    walk.insert(walk.find("steps ="), params);
    return "schema = 1\nname = \"sweep\"\nsku = \"auto\"\nbackend = \"host\"\n\n" + walk + kAfterStage;
  }

  static std::string stateOf(const ClusterRun& run, int host, const std::string& nodes) {
    return nameOf(run.stage(host, "walk-nodes-" + nodes).state);
  }
};

TEST_F(ClusterSweep, LeavesTheOtherHostsIdleUntilTheGroupIsDone) {
  ClusterRun run(kSweepHosts, plan(), {"lockstep", "ok"});
  run.startAll();
  run.finish();
  for (int host = 0; host < kSweepHosts; ++host) {
    EXPECT_EQ(run.ended(host).exitCode, 0) << run.ended(host).out << run.ended(host).err;
    EXPECT_EQ(stateOf(run, host, "1"), host < 1 ? "ran" : "idle");
    EXPECT_EQ(stateOf(run, host, "2"), host < 2 ? "ran" : "idle");
    EXPECT_EQ(stateOf(run, host, "5"), "skipped");
    EXPECT_EQ(stateOf(run, host, "all"), "ran");
    EXPECT_EQ(run.stage(host, "walk-nodes-all").group.value("world_size", 0), kSweepHosts);
    EXPECT_TRUE(run.nothingLeft(host));
  }
  EXPECT_EQ(run.stage(1, "walk-nodes-2").group.value("world_size", 0), 2);
  EXPECT_THAT(run.stage(2, "walk-nodes-2").log, IsEmpty());
}

TEST_F(ClusterSweep, KeepsIdleHostsInStepThroughAttempts) {
  ClusterRun run(kSweepHosts, plan("fail_rank = 1\n"), {"lockstep", "ok"});
  run.startAll();
  run.finish();
  EXPECT_GE(run.stage(0, "walk-nodes-1").outcome, Outcome::kWarn) << run.details(0, "walk-nodes-1");
  EXPECT_EQ(run.stage(1, "walk-nodes-2").outcome, Outcome::kFlaky) << run.details(1, "walk-nodes-2");
  EXPECT_EQ(stateOf(run, 2, "2"), "idle");
  EXPECT_THAT(run.stage(2, "walk-nodes-2").log, IsEmpty());
  EXPECT_EQ(stateOf(run, 2, "all"), "ran") << run.details(2, "walk-nodes-all");
  EXPECT_EQ(run.stage(2, "walk-nodes-all").group.value("world_size", 0), kSweepHosts);
}

TEST_F(ClusterSweep, TellsIdleHostsWhoEndedTheGroup) {
  std::string text = plan("work = 0.05\n");
  text.replace(text.find("[1, 2, 5, \"all\"]"), 16, "[2, \"all\"]");
  text.replace(text.find("attempts = 2"), 12, "attempts = 1");
  text.replace(text.find("steps = 3"), 9, "steps = 100");
  ClusterRun run(kSweepHosts, text, {"lockstep", "ok"});
  run.startAll();
  kill(run.awaitRank(1, "walk-nodes-2"), SIGKILL);
  run.finish();
  EXPECT_THAT(run.culprit(0, "walk-nodes-2"), HasSubstr("rank 1 "));
  EXPECT_EQ(stateOf(run, 2, "2"), "idle");
  EXPECT_EQ(run.stage(2, "walk-nodes-2").outcome, Outcome::kSkipped);
  EXPECT_THAT(run.stage(2, "walk-nodes-2").log, Contains(HasSubstr("its group did not pass: rank 1 ")));
  EXPECT_GE(run.stage(2, "walk-nodes-all").outcome, Outcome::kWarn) << run.details(2, "walk-nodes-all");
  EXPECT_EQ(run.ended(0).exitCode, 3) << run.ended(0).out;
}

}  // namespace
}  // namespace muster::testing
