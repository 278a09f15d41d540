// SPDX-License-Identifier: Apache-2.0
// One plan in two jobs: what each node does alone (--scope device,node), and what all do together (--scope
// cluster).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cluster/cluster_run.h"

namespace muster::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr int kScopeHosts = 2;

class ClusterScope : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Hosts::whyNot(); !why.empty()) GTEST_SKIP() << why;
  }

  /// The walk of all nodes needs what each does alone before.
  static std::string plan() {
    std::string walk = clusterWalk("walk", 3, "40s");
    walk.insert(walk.find("scope ="), "needs = [\"after\"]\n");
    return "schema = 1\nname = \"two-jobs\"\nsku = \"auto\"\nbackend = \"host\"\n\n" + kAfterStage + walk;
  }

  static void hold(ClusterRun& run, const std::string& scopes, int hosts = kScopeHosts) {
    for (int host = 0; host < hosts; ++host) run.start(host, host, {"--scope", scopes});
    run.finish();
  }

  static void expectElsewhere(const ClusterRun& run, int host, const std::string& stage) {
    const StageRecord record = run.stage(host, stage);
    EXPECT_EQ(record.state, StageState::kElsewhere);
    EXPECT_EQ(record.outcome, Outcome::kElsewhere);
    ASSERT_EQ(record.verdicts.size(), 1U);
    EXPECT_THAT(record.verdicts[0].detail,
                HasSubstr(std::string("its scope is ") + nameOf(record.scope) + "; this job runs scope "));
    EXPECT_EQ(run.record(host).accounting.of(Outcome::kElsewhere), 1U);
    EXPECT_THAT(run.record(host).reasons, Contains("1 stage runs in another job (--scope)"));
  }
};

TEST_F(ClusterScope, LeavesStagesOfAllNodesToAnotherJobAndNeedsNoOtherNode) {
  ClusterRun run(kScopeHosts, plan(), {"lockstep", "ok"});
  // Only one of the two nodes is there at all.
  hold(run, "device,node", 1);
  EXPECT_EQ(run.ended(0).exitCode, 0) << run.ended(0).out << run.ended(0).err;
  EXPECT_EQ(run.stage(0, "after").state, StageState::kRan);
  expectElsewhere(run, 0, "walk");
}

TEST_F(ClusterScope, RunsStagesOfAllNodesAndLeavesTheRestToAnotherJob) {
  ClusterRun run(kScopeHosts, plan(), {"lockstep", "ok"});
  hold(run, "cluster");
  for (int host = 0; host < kScopeHosts; ++host) {
    EXPECT_EQ(run.ended(host).exitCode, 0) << run.ended(host).out << run.ended(host).err;
    const StageRecord walk = run.stage(host, "walk");
    EXPECT_EQ(walk.group.value("world_size", 0), kScopeHosts) << run.details(host);
    EXPECT_THAT(walk.log, Contains(HasSubstr("it needs after, which runs in another job")));
    expectElsewhere(run, host, "after");
  }
}

TEST_F(ClusterScope, StillFailsWhenAStageOfAllNodesDoes) {
  std::string text = plan();
  text.insert(text.find("steps ="), "fail_rank = 1\n");
  ClusterRun run(kScopeHosts, text, {"lockstep", "ok"});
  hold(run, "cluster");
  EXPECT_EQ(run.ended(1).exitCode, 3) << run.ended(1).out << run.ended(1).err;
  expectElsewhere(run, 1, "after");
}

TEST_F(ClusterScope, RefusesNodesOfDifferentJobs) {
  ClusterRun run(kScopeHosts, plan(), {"lockstep", "ok"});
  run.start(0, 0, {"--arrival", "5s"});
  run.start(1, 1, {"--arrival", "5s", "--scope", "cluster"});
  run.finish();
  EXPECT_EQ(run.ended(1).exitCode, 2) << run.ended(1).out;
  EXPECT_THAT(run.ended(1).err, HasSubstr("node 1 (n1) has scopes cluster, and node 0 (n0) has "));
}

TEST_F(ClusterScope, IsRefusedWhenItLeavesNothingToRun) {
  ClusterRun run(kScopeHosts, plan(), {"lockstep", "ok"});
  hold(run, "node", 1);
  EXPECT_EQ(run.ended(0).exitCode, 2) << run.ended(0).out;
  EXPECT_THAT(
      run.ended(0).err,
      HasSubstr("no stage of plan two-jobs has a scope of --scope node; its stages have cluster, device"));
}

}  // namespace
}  // namespace muster::testing
