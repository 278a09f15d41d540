// SPDX-License-Identifier: Apache-2.0
#include "runner/app/node/run_folder.h"

#include <gtest/gtest.h>

#include <fstream>

#include "runner/app/node/launch_position.h"
#include "runner/system/files.h"
#include "tests/support/process.h"

namespace muster {
namespace {

using testing::TempDir;

JournalStage stageNamed(const std::string& name) {
  JournalStage entry;
  entry.stage.name = name;
  entry.stage.state = StageState::kRan;
  entry.stage.scope = Scope::kNode;
  entry.stage.evidence = Json::object();
  entry.virtualEnd = 4.5;
  return entry;
}

TEST(RunFolder, KeepsWhatWasAppended) {
  TempDir dir;
  {
    auto folder = RunFolder::create(dir.path() / "run");
    ASSERT_TRUE(folder.ok()) << folder.error().text();
    ASSERT_TRUE(folder->appendRun({{"run_id", "r1"}}).ok());
    ASSERT_TRUE(folder->appendStage(stageNamed("gemm")).ok());
  }
  auto again = RunFolder::open(dir.path() / "run");
  ASSERT_TRUE(again.ok()) << again.error().text();
  const auto journal = again->readJournal();
  ASSERT_TRUE(journal.ok()) << journal.error().text();
  EXPECT_EQ(journal->run.value("run_id", ""), "r1");
  ASSERT_EQ(journal->stages.size(), 1u);
  EXPECT_EQ(journal->stages[0].stage.name, "gemm");
  EXPECT_EQ(journal->stages[0].virtualEnd, 4.5);
}

TEST(RunFolder, KnowsTheStageInWhichItsRunWasKilled) {
  TempDir dir;
  auto folder = RunFolder::create(dir.path() / "run");
  ASSERT_TRUE(folder.ok()) << folder.error().text();
  const auto killedIn = [&] {
    const auto journal = folder->readJournal();
    EXPECT_TRUE(journal.ok()) << journal.error().text();
    return journal.ok() ? journal->killedIn : "";
  };
  ASSERT_TRUE(folder->appendRun({{"run_id", "r1"}}).ok());
  EXPECT_EQ(killedIn(), "");
  ASSERT_TRUE(folder->appendBegun("gemm").ok());
  EXPECT_EQ(killedIn(), "gemm");
  ASSERT_TRUE(folder->appendStage(stageNamed("gemm")).ok());
  EXPECT_EQ(killedIn(), "") << "it ended";
  ASSERT_TRUE(folder->appendBegun("memory").ok());
  ASSERT_TRUE(folder->appendBegun("").ok());
  EXPECT_EQ(killedIn(), "") << "it was interrupted, and what it had failed is kept";
}

/// A simulated run makes something for each node.
TEST(RunFolder, RefusesNumbersOfNodesThatNoRunHas) {
  for (const auto& [rank, count] : {std::pair(0, 2'000'000'000), {2, 2}, {-1, 2}, {0, 0}, {1, 2}}) {
    TempDir dir;
    auto folder = RunFolder::create(dir.path() / "run");
    ASSERT_TRUE(folder.ok()) << folder.error().text();
    ASSERT_TRUE(folder->appendRun({{"run_id", "r1"}, {"node_rank", rank}, {"node_count", count}}).ok());
    EXPECT_EQ(folder->readJournal().ok(), rank == 1) << rank << " of " << count;
  }
}

TEST(RunFolder, KeepsTheLastInterruptionOfAStage) {
  TempDir dir;
  auto folder = RunFolder::create(dir.path() / "run");
  ASSERT_TRUE(folder.ok()) << folder.error().text();
  ASSERT_TRUE(folder->appendRun({{"run_id", "r1"}}).ok());
  for (const int attempts : {1, 2}) {
    StageRecord stage = stageNamed("gemm").stage;
    stage.attempts = attempts;
    ASSERT_TRUE(folder->appendInterrupted(stage).ok());
  }
  const auto journal = folder->readJournal();
  ASSERT_TRUE(journal.ok()) << journal.error().text();
  EXPECT_TRUE(journal->stages.empty()) << "it is run again";
  ASSERT_EQ(journal->interrupted.size(), 1u);
  EXPECT_EQ(journal->interrupted.at("gemm").attempts, 2);
}

TEST(RunFolder, KeepsFilesInOrder) {
  TempDir dir;
  auto folder = RunFolder::create(dir.path() / "run");
  ASSERT_TRUE(folder.ok()) << folder.error().text();
  ASSERT_TRUE(folder->keepFile("profile.toml", "name = \"x\"\n").ok());
  ASSERT_TRUE(folder->appendRun({{"run_id", "r1"}}).ok());
  // A line is not written before the file that it speaks of is on the disk.
  EXPECT_EQ(readFile(dir.path() / "run" / "profile.toml").value(), "name = \"x\"\n");
  EXPECT_TRUE(folder->settle().ok());
}

TEST(RunFolder, SaysLaterWhatCouldNotBeKept) {
  TempDir dir;
  auto folder = RunFolder::create(dir.path() / "run");
  ASSERT_TRUE(folder.ok()) << folder.error().text();
  ASSERT_TRUE(folder->keepFile("nothere/profile.toml", "").ok());
  EXPECT_FALSE(folder->appendRun({{"run_id", "r1"}}).ok());
  EXPECT_FALSE(RunFolder::holdsRun(dir.path() / "run"));
}

TEST(RunFolder, RefusesAFolderThatHoldsARun) {
  TempDir dir;
  {
    auto folder = RunFolder::create(dir.path() / "run");
    ASSERT_TRUE(folder->appendRun({{"run_id", "r1"}}).ok());
  }
  const auto second = RunFolder::create(dir.path() / "run");
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kUsage);
  EXPECT_NE(second.error().message.find("--resume"), std::string::npos);
}

/// A fleet would not see the records of these nodes any more.
TEST(RunFolder, IsNotMadeAboveTheRunsOfNodes) {
  TempDir dir;
  for (const char* node : {"node-0001", "records/nodes/n1", "records/cluster/n1/node-0001"}) {
    ASSERT_TRUE(RunFolder::create(dir.path() / "run" / node)->appendRun({{"run_id", "r1"}}).ok());
    const auto folder = RunFolder::create(dir.path() / "run");
    ASSERT_FALSE(folder.ok());
    EXPECT_NE(folder.error().message.find(std::string("holds the runs of other nodes, such as ") + node),
              std::string::npos)
        << folder.error().message;
    EXPECT_TRUE(RunFolder::create(dir.path() / "run" / "beside").ok());
    std::filesystem::remove_all(dir.path() / "run");
  }
}

/// A run of several nodes would otherwise begin anew inside the one that was to be resumed.
TEST(RunFolder, OfOneNodeIsNotTakenForThatOfAll) {
  TempDir dir;
  Launcher position;
  position.nodeCount = 3;
  position.nodeRank = 1;
  const auto own = nodeFolder(dir.path(), position);
  ASSERT_TRUE(own.ok()) << own.error().text();
  EXPECT_EQ(*own, dir.path() / "node-0001");
  ASSERT_TRUE(RunFolder::create(*own)->appendRun({{"run_id", "r1"}}).ok());
  EXPECT_EQ(*nodeFolder(dir.path(), position), dir.path() / "node-0001");
  EXPECT_EQ(nodeFolder(*own, position).error().code, ErrorCode::kUsage);
  position.nodeCount = 1;
  EXPECT_EQ(*nodeFolder(*own, position), *own);
}

TEST(RunFolder, RefusesASecondProcess) {
  TempDir dir;
  auto folder = RunFolder::create(dir.path() / "run");
  ASSERT_TRUE(folder->appendRun({{"run_id", "r1"}}).ok());
  const auto second = RunFolder::open(dir.path() / "run");
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().message.find("another muster"), std::string::npos);
}

TEST(RunFolder, DropsATruncatedLineAndContinues) {
  TempDir dir;
  {
    auto folder = RunFolder::create(dir.path() / "run");
    ASSERT_TRUE(folder->appendRun({{"run_id", "r1"}}).ok());
  }
  std::ofstream(dir.path() / "run" / "journal.jsonl", std::ios::app) << "{\"type\": \"stage\", \"sta";
  auto folder = RunFolder::open(dir.path() / "run");
  ASSERT_TRUE(folder.ok());
  ASSERT_TRUE(folder->appendStage(stageNamed("gemm")).ok());
  const auto journal = folder->readJournal();
  ASSERT_TRUE(journal.ok()) << journal.error().text();
  ASSERT_EQ(journal->stages.size(), 1u);
}

TEST(RunFolder, ADamagedJournalIsAnErrorWithItsLine) {
  TempDir dir;
  {
    auto folder = RunFolder::create(dir.path() / "run");
    ASSERT_TRUE(folder->appendRun({{"run_id", "r1"}}).ok());
  }
  std::ofstream(dir.path() / "run" / "journal.jsonl", std::ios::app) << "garbage\n";
  auto folder = RunFolder::open(dir.path() / "run");
  ASSERT_TRUE(folder.ok());
  const auto journal = folder->readJournal();
  ASSERT_FALSE(journal.ok());
  EXPECT_NE(journal.error().text().find("journal.jsonl:2"), std::string::npos) << journal.error().text();
}

TEST(RunFolder, ARunOfAnotherVersionIsNotResumed) {
  TempDir dir;
  { ASSERT_TRUE(RunFolder::create(dir.path() / "run").ok()); }
  std::ofstream(dir.path() / "run" / "journal.jsonl", std::ios::app) << R"({"type":"run","run_id":"r1"})"
                                                                     << "\n";
  auto folder = RunFolder::open(dir.path() / "run");
  ASSERT_TRUE(folder.ok());
  const auto journal = folder->readJournal();
  ASSERT_FALSE(journal.ok());
  EXPECT_EQ(journal.error().code, ErrorCode::kUsage);
  EXPECT_NE(journal.error().text().find("resume it with that one"), std::string::npos)
      << journal.error().text();
}

TEST(RunFolder, DiscardsWhatTheRunMadeAndNothingElse) {
  TempDir dir;
  auto made = RunFolder::create(dir.path() / "run");
  ASSERT_TRUE(made.ok()) << made.error().text();
  ASSERT_TRUE(made->appendRun({{"run_id", "r1"}}).ok());
  dir.write("run/requests/inventory.json", "{}");
  made->discard();
  EXPECT_FALSE(std::filesystem::exists(dir.path() / "run"));

  const auto mine = dir.write("mine/output/thesis.txt", "years of work");
  auto shared = RunFolder::create(dir.path() / "mine");
  ASSERT_TRUE(shared.ok()) << shared.error().text();
  dir.write("mine/requests/inventory.json", "{}");
  shared->discard();
  EXPECT_TRUE(std::filesystem::exists(mine)) << "it was there before";
  EXPECT_FALSE(std::filesystem::exists(dir.path() / "mine/requests"));
  EXPECT_FALSE(std::filesystem::exists(dir.path() / "mine/journal.jsonl"));
}

TEST(RunFolder, AnEmptyFolderHasNothingToResume) {
  TempDir dir;
  const auto folder = RunFolder::open(dir.path());
  ASSERT_FALSE(folder.ok());
  EXPECT_EQ(folder.error().code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace muster
