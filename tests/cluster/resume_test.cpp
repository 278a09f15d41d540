// SPDX-License-Identifier: Apache-2.0
// Runs over several hosts that are killed or interrupted in the middle of a stage of all nodes, and resumed:
// by all, by one, and by node 0 alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/cluster/cluster_run.h"

namespace muster::testing {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int kResumeHosts = 3;

/// The walk takes some seconds, so that it can be cut short, and ends when it is run again.
std::string plan() {
  return "schema = 1\nname = \"resumable\"\nsku = \"auto\"\nbackend = \"host\"\n\n" +
         clusterWalk("first", 3, "120s") + clusterWalk("walk", 400, "120s") + kAfterStage +
         clusterWalk("last", 3, "120s");
}

class ClusterResume : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Hosts::whyNot(); !why.empty()) GTEST_SKIP() << why;
    run_ = std::make_unique<ClusterRun>(kResumeHosts, plan(), std::vector<std::string>{"lockstep", "ok"});
    run_->startAll();
    for (int host = 0; host < kResumeHosts; ++host) run_->awaitRank(host);
  }

  /// How often the host's journal says that a stage ended.
  [[nodiscard]] int endings(int host, const std::string& stage) const {
    const std::string journal = readWhole(run_->folder(host) / "journal.jsonl");
    const std::string mark = "\"name\":\"" + stage + "\"";
    int count = 0;
    for (size_t at = journal.find(mark); at != std::string::npos; at = journal.find(mark, at + 1)) ++count;
    return count;
  }

  void expectRanWell(int host, const std::string& stage) const {
    const StageRecord record = run_->stage(host, stage);
    EXPECT_EQ(record.state, StageState::kRan) << "host " << host << ": " << record.reason;
    EXPECT_NE(record.outcome, Outcome::kError) << "host " << host << ": " << run_->details(host, stage);
    EXPECT_EQ(record.group.value("world_size", 0), kResumeHosts) << "host " << host;
  }

  void expectError(int host, const std::string& stage, const std::string& text) const {
    EXPECT_EQ(run_->stage(host, stage).outcome, Outcome::kError) << "host " << host;
    EXPECT_THAT(run_->details(host, stage), HasSubstr(text)) << "host " << host;
  }

  std::string said(int host) const { return run_->ended(host).out + run_->ended(host).err; }

  std::unique_ptr<ClusterRun> run_;
};

TEST_F(ClusterResume, RunsWhatNobodyFinishedOnAllHostsAgain) {
  for (int host = 0; host < kResumeHosts; ++host) run_->signal(host, SIGKILL);
  run_->finish();
  for (int host = 0; host < kResumeHosts; ++host) {
    EXPECT_TRUE(run_->nothingLeft(host));
    EXPECT_EQ(endings(host, "first"), 1);
    EXPECT_EQ(endings(host, "walk"), 0);
    run_->resume(host);
  }
  run_->finish();
  for (int host = 0; host < kResumeHosts; ++host) {
    EXPECT_EQ(run_->ended(host).exitCode, 0) << said(host);
    for (const char* stage : {"first", "walk", "last"}) {
      expectRanWell(host, stage);
      EXPECT_EQ(endings(host, stage), 1) << stage;
    }
    EXPECT_EQ(run_->record(host).resumed, 1);
  }
}

TEST_F(ClusterResume, TellsWhichHostsHaveFinishedWhatOneHasNot) {
  run_->signal(2, SIGKILL);
  run_->finish();
  for (const int host : {0, 1}) expectError(host, "walk", "node 2 (n2) was lost");
  for (int host = 0; host < kResumeHosts; ++host) run_->resume(host);
  run_->finish();
  for (int host = 0; host < kResumeHosts; ++host) EXPECT_EQ(run_->ended(host).exitCode, 3) << said(host);
  for (const char* stage : {"walk", "last"})
    expectError(2, stage,
                "nodes disagree on whether this stage is finished: it is on node 0 (n0) (error), node 1 (n1) "
                "(error), and not on node 2 (n2)");
  for (const int host : {0, 1})
    for (const char* stage : {"first", "walk", "last"}) EXPECT_EQ(endings(host, stage), 1) << stage;
  EXPECT_EQ(run_->stage(2, "after").state, StageState::kRan);
}

TEST_F(ClusterResume, TellsNodeZeroWhatTheOthersHaveFinishedWithoutIt) {
  run_->signal(0, SIGKILL);
  run_->finish();
  for (const int host : {1, 2}) expectError(host, "walk", "lost node 0 (n0)");
  for (int host = 0; host < kResumeHosts; ++host) run_->resume(host);
  run_->finish();
  for (int host = 0; host < kResumeHosts; ++host) EXPECT_EQ(run_->ended(host).exitCode, 3) << said(host);
  for (const char* stage : {"walk", "last"})
    expectError(
        0, stage,
        "it is on node 1 (n1) (error), node 2 (n2) (error), and not on node 0 (n0); a finished stage");
}

TEST_F(ClusterResume, TakesAHostBackThatWasStartedAgainAtOnce) {
  run_->signal(2, SIGKILL);
  run_->finish(2);
  run_->resume(2);
  run_->finish();
  for (const int host : {0, 1}) {
    // The latter where the start itself takes longer than --lost-after: this machine may be busy.
    EXPECT_THAT(run_->culprit(host),
                AnyOf(HasSubstr("node 2 (n2) was started again in the middle of this stage"),
                      HasSubstr("node 2 (n2) was lost")));
    expectError(host, "walk", run_->culprit(host));
  }
  EXPECT_EQ(run_->stage(2, "walk").outcome, Outcome::kError);
  EXPECT_THAT(run_->details(2), AnyOf(HasSubstr("node 2 (n2) was started again in the middle of this stage"),
                                      HasSubstr("nodes disagree on whether this stage is finished")));
  for (int host = 0; host < kResumeHosts; ++host) {
    EXPECT_EQ(run_->ended(host).exitCode, 3) << said(host);
    expectRanWell(host, "last");
  }
}

TEST_F(ClusterResume, GoesOnWithNodeZeroThatWasStartedAgainAtOnce) {
  run_->signal(0, SIGKILL);
  run_->finish(0);
  run_->resume(0);
  run_->finish();
  // Which was started again, or where its start takes longer than --lost-after, which serves the store.
  for (const int host : {1, 2}) expectError(host, "walk", "lost node 0 (n0), which ");
  expectError(0, "walk", "nodes disagree on whether this stage is finished");
  for (int host = 0; host < kResumeHosts; ++host) {
    EXPECT_EQ(run_->ended(host).exitCode, 3) << said(host);
    expectRanWell(host, "last");
  }
}

}  // namespace
}  // namespace muster::testing
