// SPDX-License-Identifier: Apache-2.0
#include "runner/slurm/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/process.h"

namespace muster::slurm {
namespace {

using muster::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Progress : public ::testing::Test {
 protected:
  Progress() {
    Submission submission;
    submission.id = "plan-1";
    submission.planFile = "plan.toml";
    submission.nodes = {"n1", "n2", "n3", "n4"};
    auto made = RunStore::create(folder_.path() / "run", submission);
    EXPECT_TRUE(made.ok()) << made.error().text();
    for (const std::string& node : submission.nodes) known_[node] = {node, "idle", "", "", 0};
  }
  void put(const std::string& file, const std::string& text) { folder_.write("run/" + file, text); }
  std::vector<NodeJob> read(const std::vector<SubmittedJob>& submitted, const std::vector<JobInfo>& jobs) {
    auto run = RunStore::open(folder_.path() / "run");
    EXPECT_TRUE(run.ok());
    auto all = readProgress(*run, submitted, jobs, known_);
    EXPECT_TRUE(all.ok());
    return *all;
  }

  TempDir folder_;
  Nodes known_;
};

TEST_F(Progress, DoesNotBelieveAnExitFileThatSlurmContradicts) {
  for (const char* node : {"n1", "n2", "n3"}) put(std::string("exits/") + node, "0\n");
  put("exits/n4", "1\n");
  put("claims/n1", "11 2026\n");
  put("claims/n2", "12 2026\n");
  put("claims/n3", "11 2026\n");
  put("claims/n4", "14 2026\n");
  const std::vector<SubmittedJob> submitted = {{JobKind::kArray, "10", 0, {}, 4}};
  const auto nodes = read(submitted, {{"10", "11", "10_0", "COMPLETED", "n1", "", 0, 0},
                                      {"10", "12", "10_1", "FAILED", "n2", "", 1, 0},
                                      {"10", "14", "10_3", "FAILED", "n4", "", 1, 0}});
  EXPECT_EQ(nodes[0].state, NodeState::kAccepted);
  EXPECT_EQ(nodes[1].state, NodeState::kFailed);
  EXPECT_THAT(nodes[1].detail, HasSubstr("Slurm reports that job 10_1 ended with 1"));
  EXPECT_EQ(nodes[2].state, NodeState::kFailed);
  EXPECT_THAT(nodes[2].detail, HasSubstr("ran on n1"));
  EXPECT_EQ(nodes[3].state, NodeState::kRejected);
}

TEST_F(Progress, GivesEveryNodeOneState) {
  put("exits/n1", "0\n");
  put("claims/n1", "11 2026\n");
  put("claims/n2", "12 2026\n");
  put("claims/n3", "13 2026\n");
  const std::vector<SubmittedJob> submitted = {{JobKind::kArray, "10", 0, {}, 4}};
  const auto nodes = read(submitted, {{"10", "12", "10_1", "RUNNING", "n2", ""},
                                      {"10", "13", "10_2", "NODE_FAIL", "n3", ""},
                                      {"10", "10", "10_3", "PENDING", "", ""}});
  EXPECT_EQ(nodes[0].state, NodeState::kAccepted);
  EXPECT_EQ(nodes[1].state, NodeState::kRunning);
  EXPECT_EQ(nodes[2].state, NodeState::kLost);
  EXPECT_THAT(nodes[2].detail, HasSubstr("ended as NODE_FAIL"));
  EXPECT_EQ(nodes[3].state, NodeState::kWaiting);
  EXPECT_EQ(countText(nodes), "1 accepted, 1 running, 1 lost, 1 waiting");
}

TEST_F(Progress, KeepsTheFailureOfARunThatWasKilled) {
  const std::string run = "{\"type\":\"run\"}\n",
                    pass = R"({"type":"stage","stage":{"name":"a","outcome":"pass"}})";
  const std::map<std::string, std::string> rest = {
      {"n1", pass + "\n"},
      {"n2",
       pass + "\n" +
           R"({"type":"interrupted","stage":{"name":"b","outcome":"error","verdicts":[{"outcome":"error","attempts":[{"outcome":"fail"}]}]}})" +
           "\n"},
      {"n3", R"({"type":"stage","stage":{"name":"a","outcome":"fail"}})"
             "\n" +
                 pass + "\n"},
      {"n4", "[]\n" + pass + "\n" + R"({"type":"interrupted","stage":)"}};
  int job = 11;
  for (const auto& [node, lines] : rest) {
    put("claims/" + node, std::to_string(job++) + " 2026\n");
    put("records/nodes/" + node + "/journal.jsonl", run + lines);
  }
  put("exits/n3", "137\n");
  const auto nodes = read({{JobKind::kArray, "10", 0, {}, 4}}, {});
  EXPECT_EQ(nodes[0].state, NodeState::kLost);
  EXPECT_EQ(nodes[1].state, NodeState::kRejected);
  EXPECT_THAT(nodes[1].detail, HasSubstr("something had failed by then"));
  EXPECT_EQ(nodes[2].state, NodeState::kRejected);
  EXPECT_EQ(nodes[3].state, NodeState::kLost) << "its last line is not whole";
}

TEST_F(Progress, RetestsANodeWhoseOnlyFailureItsPlanAllows) {
  int job = 11;
  for (const char* allowed : {"true", "false"}) {
    const std::string node = allowed == std::string("true") ? "n1" : "n2";
    put("claims/" + node, std::to_string(job++) + " 2026\n");
    put("records/nodes/" + node + "/journal.jsonl",
        R"({"type":"stage","stage":{"name":"a","outcome":"flaky","evidence":{"allow_flaky":)" +
            std::string(allowed) + "}}}\n");
  }
  const auto nodes = read({{JobKind::kArray, "10", 0, {}, 4}}, {});
  EXPECT_EQ(nodes[0].state, NodeState::kLost);
  EXPECT_EQ(nodes[1].state, NodeState::kRejected);
}

/// What a line of an interrupted stage says holds until the stage has ended.
TEST_F(Progress, TakesForAFailureWhatRejects) {
  const auto line = [](const char* type, const std::string& rest) {
    return std::string(R"({"type":")") + type + R"(","stage":{"name":"a",)" + rest + "}}\n";
  };
  const std::string
      allowed = R"("evidence":{"allow_flaky":true})",
      forbidden = R"("evidence":{"allow_flaky":false})",
      failing = R"("outcome":"fail","verdicts":[{"outcome":"fail"}],)",
      mixed = R"("outcome":"error","verdicts":[{"outcome":"error"},{"rows":{"outcome":["pass","flaky"]}}],)";
  const std::vector<std::pair<std::string, NodeState>> journals = {
      {line("stage", mixed + forbidden), NodeState::kRejected},
      {line("stage", mixed + allowed), NodeState::kLost},
      {line("interrupted", failing + forbidden), NodeState::kRejected},
      {line("interrupted", failing + allowed), NodeState::kRejected},
      {line("interrupted",
            R"("outcome":"error","verdicts":[{"outcome":"error","attempts":[{"outcome":"fail"}]}],)" +
                allowed),
       NodeState::kLost},
      {line("interrupted",
            R"("outcome":"waived","verdicts":[{"rows":{"outcome":["waived","pass"],)"
            R"("attempts":[[{"outcome":"fail"},{"outcome":"fail"}],[{"outcome":"pass"}]]}}],)" +
                forbidden),
       NodeState::kLost},
      {line("interrupted",
            R"("outcome":"pass","verdicts":[{"rows":{"outcome":["waived","pass"],)"
            R"("attempts":[[{"outcome":"fail"}],[{"outcome":"fail"},{"outcome":"pass"}]]}}],)" +
                forbidden),
       NodeState::kRejected},
      {line("interrupted", failing + forbidden) +
           line("stage", R"("outcome":"waived","verdicts":[{"outcome":"waived"}],)" + forbidden),
       NodeState::kLost},
      {line("interrupted",
            R"("outcome":"waived","verdicts":[{"outcome":"waived","attempts":[{"outcome":"fail"}]}],)" +
                forbidden),
       NodeState::kLost},
      {line("interrupted", R"("outcome":"error","verdicts":[{"outcome":"error"}],)" + forbidden),
       NodeState::kLost},
      {std::string((64u << 20) + 1, '\n'), NodeState::kRejected}};
  std::string shared = R"("outcome":"error","verdicts":[{"outcome":"pass","attempts":[0)", rows = "0";
  for (int i = 0; i < 100'000; ++i) {
    shared += ",0";
    rows += ",0";
  }
  // Rows times what they share would be 10^10.
  put("claims/n1", "11 2026\n");
  put("records/nodes/n1/journal.jsonl",
      line("interrupted", shared + R"(],"rows":{"rank":[)" + rows + "]}}]," + forbidden));
  EXPECT_EQ(read({{JobKind::kArray, "10", 0, {}, 4}}, {})[0].state, NodeState::kLost);
  for (const auto& [journal, state] : journals) {
    put("records/nodes/n1/journal.jsonl", journal);
    EXPECT_EQ(read({{JobKind::kArray, "10", 0, {}, 4}}, {})[0].state, state) << journal.substr(0, 300);
  }
}

TEST_F(Progress, FollowsNoLinkToAJournal) {
  const TempDir elsewhere;
  elsewhere.write("journal.jsonl", "{\"type\":\"interrupted\"}\n");
  put("claims/n1", "11 2026\n");
  put("claims/n2", "12 2026\n");
  put("records/nodes/n2/journal.jsonl", "");
  const auto folder = folder_.path() / "run" / "records" / "nodes";
  std::filesystem::create_directory_symlink(elsewhere.path(), folder / "n1");
  std::filesystem::remove(folder / "n2" / "journal.jsonl");
  std::filesystem::create_symlink(elsewhere.path() / "journal.jsonl", folder / "n2" / "journal.jsonl");
  for (const NodeJob& node : read({{JobKind::kArray, "10", 0, {}, 4}}, {}))
    EXPECT_NE(node.state, NodeState::kRejected) << node.node;

  elsewhere.write("node-0000/journal.jsonl", "{\"type\":\"interrupted\"}\n");
  put("cluster_exits/n1", "137\n");
  put("cluster_exits/n2", "137\n");
  put("records/cluster/n2/node-0001/journal.jsonl", "{\"type\":\"interrupted\"}\n");
  std::filesystem::create_directory_symlink(elsewhere.path(), folder.parent_path() / "cluster" / "n1");
  const auto run = RunStore::open(folder_.path() / "run");
  ASSERT_TRUE(run.ok());
  EXPECT_THAT(rejectedInCluster(*run), ElementsAre("n2")) << "its own journal is no link";
}

TEST_F(Progress, CallsANodeMissingThatNoJobCanReach) {
  known_["n2"].state = "down*";
  known_.erase("n3");
  const auto nodes = read({{JobKind::kPinned, "20", 0, {"n1"}, 1}}, {{"20", "20", "20", "PENDING", "", ""}});
  EXPECT_EQ(nodes[0].state, NodeState::kWaiting);
  EXPECT_EQ(nodes[1].state, NodeState::kMissing);
  EXPECT_THAT(nodes[1].detail, HasSubstr("down*"));
  EXPECT_EQ(nodes[2].state, NodeState::kMissing);
  EXPECT_EQ(nodes[3].state, NodeState::kMissing) << "another node's pinned job cannot take it";
}

TEST_F(Progress, CallsANodeWaitingWhileTheFleetJobCanStillPinAJobToIt) {
  const std::vector<JobInfo> jobs = {{"21", "21", "21", "PENDING", "", ""}};
  const SubmittedJob fleet = {JobKind::kFleet, "21", 0, {}, 1};
  EXPECT_EQ(read({fleet}, jobs)[0].state, NodeState::kWaiting);
  const auto pinned = read({{JobKind::kPinned, "20", 0, {"n1"}, 1}, fleet}, jobs);
  EXPECT_EQ(pinned[0].state, NodeState::kMissing) << "its turn has been";
  EXPECT_EQ(pinned[1].state, NodeState::kWaiting);
}

TEST_F(Progress, TakesNoExitCodeFromAFileThatHoldsNone) {
  for (const char* text : {"", "zero", "0 0", "-1", "999", "1e3"}) {
    put("exits/n1", text);
    EXPECT_EQ(read({}, {})[0].state, NodeState::kMissing) << text;
  }
}

TEST(ProgressOfClusterStages, GivesEveryNodeTheStateOfItsPart) {
  const TempDir folder;
  Submission submission;
  submission.id = "plan-1";
  submission.planFile = "plan.toml";
  submission.nodes = {"n1", "n2", "n3", "n4"};
  submission.nodeStages = false;
  submission.clusterStages = true;
  const auto run = RunStore::create(folder.path() / "run", submission);
  ASSERT_TRUE(run.ok()) << run.error().text();
  Nodes known;
  for (const std::string& node : submission.nodes) known[node] = {node, "idle", "", "", 0};
  known["n4"].state = "down";
  const SubmittedJob cluster = {JobKind::kCluster, "30", 0, {"n1", "n2", "n3"}, 1};
  const SubmittedJob fleet = {JobKind::kFleet, "31", 0, {}, 1};
  const JobInfo fleetWaits = {"31", "31", "31", "PENDING", "", ""};
  const auto counted = [&](const std::string& state) {
    const auto nodes =
        readProgress(*run, {cluster, fleet}, {{"30", "30", "30", state, "", ""}, fleetWaits}, known);
    EXPECT_TRUE(nodes.ok());
    return countText(*nodes);
  };
  EXPECT_EQ(counted("PENDING"), "3 waiting, 1 missing");
  EXPECT_EQ(counted("RUNNING"), "3 running, 1 missing");
  folder.write("run/cluster_exits/n1", "0\n");
  folder.write("run/cluster_exits/n2", "1\n");
  EXPECT_EQ(counted("RUNNING"), "1 accepted, 1 rejected, 1 running, 1 missing");
  folder.write("run/cluster.exit", "1\n");
  EXPECT_EQ(counted("NODE_FAIL"), "1 accepted, 1 rejected, 1 lost, 1 missing");
  const auto later = readProgress(*run, {cluster, fleet}, {}, known);
  ASSERT_TRUE(later.ok());
  EXPECT_EQ(countText(*later), "1 accepted, 1 rejected, 1 lost, 1 missing") << "Slurm has forgotten the job";
  EXPECT_THAT(later->at(2).detail, HasSubstr("left no exit code of this node"));
  ASSERT_TRUE(run->setClusterAside(0).ok());
  EXPECT_EQ(counted("PENDING"), "3 waiting, 1 missing") << "another round begins anew";
}

TEST_F(Progress, KnowsAllJobsOfARunAgain) {
  auto run = RunStore::open(folder_.path() / "run");
  ASSERT_TRUE(run.ok());
  ASSERT_TRUE(run->append({JobKind::kArray, "7", 0, {}, 3}).ok());
  ASSERT_TRUE(run->append({JobKind::kPinned, "8", 1, {"n4"}, 1}).ok());
  const auto jobs = run->jobs();
  ASSERT_TRUE(jobs.ok());
  ASSERT_EQ(jobs->size(), 2u);
  EXPECT_EQ(jobs->at(1).nodes.front(), "n4");
  EXPECT_EQ(jobs->at(1).round, 1);
}

TEST_F(Progress, ForgetsJobsThatWereTakenBack) {
  auto run = RunStore::open(folder_.path() / "run");
  ASSERT_TRUE(run->append({JobKind::kArray, "7", 0, {}, 3}).ok());
  ASSERT_TRUE(run->append({JobKind::kPinned, "8", 0, {"n4"}, 1}).ok());
  ASSERT_TRUE(run->appendCancelled("7").ok());
  const auto jobs = run->jobs();
  ASSERT_TRUE(jobs.ok()) << jobs.error().text();
  ASSERT_EQ(jobs->size(), 1u);
  EXPECT_EQ(jobs->front().job, "8");
}

TEST_F(Progress, RefusesARunWhoseNodesLeadOutOfItsFolder) {
  std::string text = muster::testing::readWhole(folder_.path() / "run" / "slurm.json");
  text.replace(text.find("\"n1\""), 4, "\"../../n1\"");
  put("slurm.json", text);
  const auto run = RunStore::open(folder_.path() / "run");
  ASSERT_FALSE(run.ok());
  EXPECT_THAT(run.error().message, HasSubstr("not a node name"));
  text.replace(text.find("\"../../n1\""), 10, "\"n2\"");
  put("slurm.json", text);
  EXPECT_THAT(RunStore::open(folder_.path() / "run").error().message, HasSubstr("\"n2\" is named twice"));
}

TEST_F(Progress, LetsOnlyOneAtATimeSubmit) {
  const auto run = RunStore::open(folder_.path() / "run");
  const auto first = run->lock();
  ASSERT_TRUE(first.ok());
  EXPECT_FALSE(run->lock().ok());
}

}  // namespace
}  // namespace muster::slurm
