// SPDX-License-Identifier: Apache-2.0
#include "runner/slurm/rounds.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/process.h"

namespace muster::slurm {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ArrayRequests, StaysBelowMaxArraySizeAndCoversEveryNode) {
  const auto requests = arrayRequests({}, 2500, {}, 1001, 0);
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_THAT(requests[0].options, ElementsAre("--array=0-999"));
  EXPECT_THAT(requests[2].options, ElementsAre("--array=0-499"));
  int tasks = 0;
  for (const JobRequest& request : requests) tasks += request.job.tasks;
  EXPECT_EQ(tasks, 2500);
}

TEST(ArrayRequests, LimitsWhatRunsAtOnceAndKeepsOffOtherNodes) {
  JobSettings jobs;
  jobs.atOnce = 2;
  const auto requests = arrayRequests(jobs, 4, {"node5", "node6"}, 1001, 0);
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_THAT(requests[0].options, ElementsAre("--array=0-3%2", "--exclude=node[5-6]"));
  EXPECT_TRUE(arrayRequests(jobs, 0, {}, 1001, 0).empty());
}

TEST(Unavailable, NamesWhatIsDownAndRefusesWhatIsUnknown) {
  const Nodes known = {{"node1", {"node1", "idle", "", "", 0}},
                       {"node2", {"node2", "down*", "slurm", "Not responding", 0}}};
  const auto found = unavailable({"node1", "node2"}, known);
  ASSERT_TRUE(found.ok());
  EXPECT_THAT(*found,
              ElementsAre(std::pair<std::string, std::string>("node2", "down*: Not responding [slurm]")));
  const auto wrong = unavailable({"node1", "nod2"}, known);
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.error().message, HasSubstr("nod2; did you mean \"node2\"?"));
}

/// A run of two rejected nodes with a fleet report, after its first round.
class PutBack : public ::testing::Test {
 protected:
  PutBack() {
    Submission submission;
    submission.id = "plan-1";
    submission.planFile = "plan.toml";
    submission.nodes = {"n1", "n2.x"};
    auto made = RunStore::create(folder_.path() / "run", submission);
    EXPECT_TRUE(made.ok()) << made.error().text();
    run_.emplace_back(*made);
    for (const std::string& node : submission.nodes) {
      put("claims/" + node, "7 then\n");
      put("exits/" + node, "1\n");
      put("records/nodes/" + node + "/record.json", "{}");
    }
    for (const char* file : {"cluster.exit", "cluster_exits/n1", "records/cluster/n1/record.json"})
      put(file, "1\n");
    put("fleet.exit", "1\n");
    put("fleet/fleet.json", "{}");
    EXPECT_TRUE(run().append({JobKind::kArray, "7", 0, {}, 2}).ok());
    before_ = files();
  }
  void put(const std::string& name, const std::string& text) const { folder_.write("run/" + name, text); }
  [[nodiscard]] const RunStore& run() const { return run_.front(); }
  [[nodiscard]] std::set<std::string> files() const {
    std::set<std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(run().folder()))
      if (entry.is_regular_file()) all.insert(entry.path().lexically_relative(run().folder()).string());
    return all;
  }
  /// Does the first of what a resume does before it submits: as if it were killed then.
  void resumeUntil(size_t steps) const {
    const std::vector<std::pair<std::string, std::string>> moves = {
        {"records/nodes/n1", "nodes/n1.0/run"}, {"exits/n1", "nodes/n1.0/exit"},
        {"claims/n1", "nodes/n1.0/claim"},      {"records/nodes/n2.x", "nodes/n2.x.0/run"},
        {"exits/n2.x", "nodes/n2.x.0/exit"},    {"claims/n2.x", "nodes/n2.x.0/claim"},
        {"fleet.exit", "fleet.0/fleet.exit"},   {"fleet", "fleet.0/fleet"},
        {"records/cluster", "cluster.0/run"},   {"cluster_exits", "cluster.0/exits"},
        {"cluster.exit", "cluster.0/exit"}};
    ASSERT_LE(steps, moves.size());
    for (size_t i = 0; i < steps; ++i) {
      const fs::path to = run().folder() / "attempts" / moves[i].second;
      fs::create_directories(to.parent_path());
      fs::rename(run().folder() / moves[i].first, to);
    }
  }
  static constexpr size_t kSteps = 11;

  muster::testing::TempDir folder_;
  std::vector<RunStore> run_;  // one
  std::set<std::string> before_;
};

TEST_F(PutBack, EveryVerdictIsThereAgainWheneverAResumeIsKilled) {
  for (size_t steps = 0; steps <= kSteps; ++steps) {
    resumeUntil(steps);
    ASSERT_TRUE(putBack(run()).ok());
    EXPECT_EQ(files(), before_) << steps;
    EXPECT_EQ(nextRound(run(), *run().jobs()), 1);
  }
}

TEST_F(PutBack, ANameWithAHugeNumberIsNoRound) {
  std::filesystem::create_directories(run().folder() / "attempts/nodes/zzz.2147483645");
  EXPECT_EQ(nextRound(run(), *run().jobs()), 1);
}

TEST_F(PutBack, WhatRunsAgainKeepsWhatItWasSetAsideFor) {
  resumeUntil(kSteps);
  ASSERT_TRUE(run().append({JobKind::kPinned, "8", 1, {"n1"}, 1}).ok());
  ASSERT_TRUE(run().append({JobKind::kFleet, "9", 1, {}, 1}).ok());
  put("claims/n2.x", "10 of a job that was taken back after it had begun\n");
  const auto after = files();
  ASSERT_TRUE(putBack(run()).ok());
  const auto now = files();
  // The cluster's too, though no job for it was submitted yet: n1 may have been repaired since.
  for (const char* file : {"attempts/nodes/n1.0/claim", "attempts/nodes/n2.x.0/claim",
                           "attempts/fleet.0/fleet.exit", "attempts/cluster.0/exit"})
    EXPECT_TRUE(now.contains(file)) << file;
  EXPECT_EQ(now.size(), after.size());
  ASSERT_TRUE(run().appendCancelled("8").ok());
  ASSERT_TRUE(run().appendCancelled("9").ok());
  EXPECT_EQ(nextRound(run(), *run().jobs()), 2) << "n2.x.0 is used";
}

}  // namespace
}  // namespace muster::slurm
