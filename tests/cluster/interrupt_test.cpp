// SPDX-License-Identifier: Apache-2.0
// Ctrl-C and SIGTERM in the middle of a stage of all nodes: at one host, at node 0, at all, and twice.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/cluster/cluster_run.h"

namespace muster::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kInterruptHosts = 3;

class ClusterInterrupt : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Hosts::whyNot(); !why.empty()) GTEST_SKIP() << why;
    run_ = std::make_unique<ClusterRun>(
        kInterruptHosts,
        "schema = 1\nname = \"interrupted\"\nsku = \"auto\"\nbackend = \"host\"\n\n" +
            clusterWalk("walk", 300, "60s") + kAfterStage + clusterWalk("last", 3, "30s"),
        std::vector<std::string>{"lockstep", "ok"});
    run_->startAll();
    for (int host = 0; host < kInterruptHosts; ++host) run_->awaitRank(host);
  }

  std::string said(int host) const { return run_->ended(host).out + run_->ended(host).err; }

  /// Ended in order: its code, its record and its report say so, and nothing is left of it.
  void expectInterrupted(int host) const {
    EXPECT_EQ(run_->ended(host).exitCode, 130) << said(host);
    EXPECT_TRUE(run_->nothingLeft(host)) << "host " << host;
    const Record record = run_->record(host);
    EXPECT_EQ(record.exitCode, 130);
    EXPECT_EQ(run_->stage(host, "walk").outcome, Outcome::kError) << run_->details(host);
    expectNoDeviceBlamed(host);
    for (const char* stage : {"after", "last"})
      EXPECT_EQ(run_->stage(host, stage).state, StageState::kSkipped);
    EXPECT_TRUE(std::filesystem::exists(run_->folder(host) / "report.html"));
    EXPECT_TRUE(std::filesystem::exists(run_->folder(host) / "junit.xml"));
  }

  /// What the interrupted host or its loss ended is no error of any device.
  void expectNoDeviceBlamed(int host) const {
    for (const Verdict& verdict : run_->stage(host, "walk").verdicts)
      if (verdict.outcome == Outcome::kError) {
        EXPECT_EQ(verdict.device, "") << verdict.detail;
      }
  }

  /// Named who left, ran what needs no other host, and ended.
  void expectWentOn(int host, const std::string& who) const {
    EXPECT_EQ(run_->ended(host).exitCode, 3) << said(host);
    EXPECT_THAT(run_->culprit(host), HasSubstr(who)) << "host " << host;
    EXPECT_THAT(run_->details(host), HasSubstr(who)) << "host " << host;
    EXPECT_EQ(run_->stage(host, "after").state, StageState::kRan);
    expectNoDeviceBlamed(host);
  }

  /// No stage of all was finished on one host and not on another.
  void expectAcceptedWhenResumed() {
    for (int host = 0; host < kInterruptHosts; ++host) run_->resume(host);
    run_->finish();
    for (int host = 0; host < kInterruptHosts; ++host) {
      EXPECT_EQ(run_->ended(host).exitCode, 0) << said(host);
      for (const char* stage : {"walk", "after", "last"})
        EXPECT_EQ(run_->stage(host, stage).state, StageState::kRan) << run_->details(host, stage);
    }
  }

  /// The rank of host 1 fails by itself, once, and what it failed is kept while the others wait for it.
  void failOnHostOne() {
    kill(run_->awaitRank(1), SIGUSR1);
    const auto journal = [&] { return readWhole(run_->folder(1) / "journal.jsonl"); };
    const std::string kept = "\"type\":\"interrupted\"";
    for (int i = 0; i < 400 && journal().find(kept) == std::string::npos; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_THAT(journal(), HasSubstr(kept));
  }

  /// It passed only when the stage ran again.
  void expectFlakyWhenResumed() {
    for (int host = 0; host < kInterruptHosts; ++host) run_->resume(host);
    run_->finish();
    EXPECT_EQ(run_->ended(1).exitCode, 1) << said(1);
    EXPECT_EQ(run_->stage(1, "walk").outcome, Outcome::kFlaky) << run_->details(1);
    for (const int host : {0, 2}) EXPECT_EQ(run_->ended(host).exitCode, 0) << said(host);
  }

  std::unique_ptr<ClusterRun> run_;
};

TEST_F(ClusterInterrupt, NamesTheHostThatWasInterruptedAndGoesOn) {
  run_->signal(2, SIGINT);
  run_->finish();
  expectInterrupted(2);
  for (const int host : {0, 1}) {
    expectWentOn(host, "node 2 (n2) was interrupted by its user");
    EXPECT_EQ(run_->stage(host, "last").state, StageState::kSkipped);
    EXPECT_THAT(run_->details(host, "last"),
                HasSubstr("node 2 (n2) does not take part: the run was interrupted ("));
  }
  expectAcceptedWhenResumed();
}

TEST_F(ClusterInterrupt, NamesNodeZeroThatWasTerminatedAndGoesOn) {
  run_->signal(0, SIGTERM);
  run_->finish();
  expectInterrupted(0);
  for (const int host : {1, 2}) {
    expectWentOn(host, "node 0 (n0) was interrupted by its user");
    EXPECT_THAT(run_->details(host, "last"), HasSubstr("node 0 (n0)"));
  }
  expectAcceptedWhenResumed();
}

/// A later signal finds the others in the stage after it.
TEST_F(ClusterInterrupt, GoesOnWhenResumedAfterSignalsAtDifferentTimes) {
  for (const int host : {1, 0, 2}) {
    run_->signal(host, SIGTERM);
    std::this_thread::sleep_for(std::chrono::seconds(2));
  }
  run_->finish();
  expectAcceptedWhenResumed();
}

/// A rank that died before the interruption is still named, also after a resume.
TEST_F(ClusterInterrupt, HidesNoRankThatDiedBefore) {
  kill(run_->awaitRank(1), SIGKILL);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  run_->signal(2, SIGTERM);
  run_->finish();
  for (int host = 0; host < kInterruptHosts; ++host) run_->resume(host);
  run_->finish();
  for (int host = 0; host < kInterruptHosts; ++host) {
    EXPECT_NE(run_->ended(host).exitCode, 0) << said(host);
    EXPECT_EQ(run_->stage(host, "walk").outcome, Outcome::kError) << run_->details(host);
    EXPECT_EQ(run_->stage(host, "last").state, StageState::kRan) << said(host);
  }
}

TEST_F(ClusterInterrupt, ForgetsNoCaseThatFailedByItselfBefore) {
  failOnHostOne();
  run_->signal(2, SIGTERM);
  run_->finish();
  expectFlakyWhenResumed();
}

TEST_F(ClusterInterrupt, ForgetsNoCaseThatFailedByItselfWhenAllAreKilled) {
  failOnHostOne();
  for (int host = 0; host < kInterruptHosts; ++host) run_->signal(host, SIGKILL);
  run_->finish();
  expectFlakyWhenResumed();
}

TEST_F(ClusterInterrupt, EndsOnAllHostsAndGoesOnWhenResumed) {
  for (int host = 0; host < kInterruptHosts; ++host) run_->signal(host, host == 1 ? SIGTERM : SIGINT);
  run_->finish();
  for (int host = 0; host < kInterruptHosts; ++host) {
    expectInterrupted(host);
    EXPECT_THAT(said(host), HasSubstr("resume the runs of all nodes together, here with muster run"));
  }
  expectAcceptedWhenResumed();
}

TEST_F(ClusterInterrupt, ASecondOneEndsTheRunnerAtOnceAndItsRanksWithIt) {
  run_->signal(2, SIGINT);
  run_->signal(2, SIGINT);
  run_->finish();
  EXPECT_EQ(run_->ended(2).signal, SIGINT) << said(2);
  EXPECT_TRUE(run_->nothingLeft(2));
  for (const int host : {0, 1}) expectWentOn(host, "node 2 (n2) was ");
}

}  // namespace
}  // namespace muster::testing
