// SPDX-License-Identifier: Apache-2.0
#include "runner/slurm/drain.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "tests/support/process.h"

namespace muster::slurm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Nodes known() {
  return {{"ok", {"ok", "idle", "root", "", 8}},
          {"busy", {"busy", "allocated", "root", "", 8}},
          {"drained", {"drained", "drained", "alice", "fan", 8}},
          {"down", {"down", "down*", "slurm", "Not responding", 8}},
          {"ours", {"ours", "draining", "root", "muster: run-1: gemm", 8}}};
}

TEST(Drain, TouchesNeitherDrainedNorDownNodes) {
  const auto actions = planDrain(
      "run-1", {{"ok", "gemm"}, {"busy", "gemm"}, {"drained", "gemm"}, {"down", "gemm"}, {"gone", "gemm"}},
      known());
  ASSERT_EQ(actions.size(), 5u);
  EXPECT_EQ(actions[0].reason, "muster: run-1: gemm");
  EXPECT_EQ(actions[1].reason, "muster: run-1: gemm");
  for (size_t i = 2; i < 5; ++i) EXPECT_EQ(actions[i].reason, "") << actions[i].node;
  EXPECT_THAT(actions[2].why, HasSubstr("drained already (drained: fan [alice])"));
  EXPECT_THAT(actions[4].why, HasSubstr("no such node"));
}

TEST(Drain, LeavesANodeWhoseFailuresSpeakAgainstOthers) {
  const auto actions = planDrain(
      "run-1", {{"ok", "ring.culprits of link busy - far", true}, {"busy", "ring.culprits"}}, known());
  ASSERT_EQ(actions.size(), 2u);
  EXPECT_EQ(actions[0].reason, "");
  EXPECT_EQ(actions[0].why, "ring.culprits of link busy - far");
  EXPECT_EQ(actions[1].reason, "muster: run-1: ring.culprits");
}

TEST(Drain, GivesAReasonOfOneLineThatBeginsWithMuster) {
  const std::string reason = drainReason("run-1", "two\nlines and \"quotes\" " + std::string(1000, 'x'));
  EXPECT_THAT(reason, StartsWith("muster: run-1: two"));
  EXPECT_EQ(reason.find('\n'), std::string::npos);
  EXPECT_EQ(reason.find('"'), std::string::npos);
  EXPECT_LE(reason.size(), 220u);
}

TEST(Undrain, ReadsNoListThatALinkLeadsTo) {
  const muster::testing::TempDir folder;
  Submission submission;
  submission.planFile = "plan.toml";
  submission.id = "run-1";
  submission.nodes = {"n1"};
  const auto run = RunStore::create(folder.path() / "run", submission);
  ASSERT_TRUE(run.ok()) << run.error().text();
  const auto list =
      folder.write("list", "{\"action\":\"drain\",\"node\":\"n1\",\"reason\":\"muster: run-1: gemm\"}\n");
  std::filesystem::copy_file(list, run->folder() / "drained.jsonl");
  ASSERT_TRUE(drainedByRun(*run).ok());
  EXPECT_EQ(drainedByRun(*run)->size(), 1u);
  std::filesystem::remove(run->folder() / "drained.jsonl");
  std::filesystem::create_symlink(list, run->folder() / "drained.jsonl");
  EXPECT_FALSE(drainedByRun(*run).ok());
}

/// Comparing each line with all before it would take many minutes here.
TEST(Undrain, ReadsALongListInItsOrder) {
  constexpr int kNodes = 300'000;
  const muster::testing::TempDir folder;
  Submission submission;
  submission.planFile = "plan.toml";
  submission.id = "run-1";
  submission.nodes = {"n1"};
  const auto run = RunStore::create(folder.path() / "run", submission);
  ASSERT_TRUE(run.ok()) << run.error().text();
  std::string list;
  const auto add = [&](const char* action, int node) {
    list += fmt::format("{{\"action\":\"{}\",\"node\":\"n{}\",\"reason\":\"r\"}}\n", action, node);
  };
  for (int i = kNodes; i > 0; --i) add("drain", i);
  add("undrain", 7);
  add("undrain", 9);
  add("drain", 9);
  folder.write("run/drained.jsonl", list);
  const auto drained = drainedByRun(*run);
  ASSERT_TRUE(drained.ok()) << drained.error().text();
  ASSERT_EQ(drained->size(), kNodes - 1u);
  EXPECT_EQ(drained->front().node, "n300000");
  EXPECT_EQ((*drained)[kNodes - 2].node, "n9") << "drained last";
  EXPECT_EQ((*drained)[kNodes - 3].node, "n1");
  const auto actions = planUndrain(run->submission(), *drained, known());
  ASSERT_EQ(actions.size(), kNodes - 1u);
  EXPECT_EQ(actions[0].why, "is not a node of this run");
}

TEST(Undrain, GivesBackOnlyWhatStillHasOurReason) {
  const std::vector<NodeAction> drained = {{"ours", "muster: run-1: gemm", ""},
                                           {"drained", "muster: run-1: gemm", ""},
                                           {"ok", "muster: run-1: gemm", ""}};
  Submission run;
  run.id = "run-1";
  run.nodes = {"ours", "drained", "ok"};
  const auto actions = planUndrain(run, drained, known());
  EXPECT_EQ(actions[0].reason, "muster: run-1: gemm");
  EXPECT_EQ(actions[1].reason, "");
  EXPECT_THAT(actions[1].why, HasSubstr("was not drained by this run (drained: fan [alice])"));
  EXPECT_EQ(actions[2].reason, "");
  EXPECT_THAT(actions[2].why, HasSubstr("no longer drained"));
}

/// Lines that somebody else has written into drained.jsonl, beside what Slurm says.
TEST(Undrain, DoesNotBelieveItsOwnList) {
  Submission run;
  run.id = "run-1";
  run.nodes = {"mine", "other-run", "changed"};
  const Nodes known = {{"mine", {"mine", "drained", "alice", "fan", 8}},
                       {"other-run", {"other-run", "drained", "root", "muster: run-10: gemm", 8}},
                       {"changed", {"changed", "drained", "root", "muster: run-1: gemm", 8}},
                       {"foreign", {"foreign", "drained", "root", "muster: run-1: gemm", 8}}};
  const auto actions = planUndrain(run,
                                   {{"mine", "fan", ""},
                                    {"other-run", "muster: run-10: gemm", ""},
                                    {"changed", "muster: run-1: memory", ""},
                                    {"foreign", "muster: run-1: gemm", ""}},
                                   known);
  ASSERT_EQ(actions.size(), 4U);
  for (const NodeAction& action : actions) EXPECT_EQ(action.reason, "") << action.node;
  EXPECT_THAT(actions[0].why, HasSubstr("was not drained by this run (drained: fan [alice])"));
  EXPECT_THAT(actions[1].why, HasSubstr("was not drained by this run"));
  EXPECT_THAT(actions[2].why, HasSubstr("its reason was changed"));
  EXPECT_THAT(actions[3].why, HasSubstr("is not a node of this run"));
}

/// A run of n1, n2 and n3, on fakes of sinfo, which shows the folder of nodes, and of scontrol, which refuses
/// n2.
class Refusal : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = std::getenv("PATH");
    setenv("PATH", (folder_.path().string() + ":" + path_).c_str(), 1);
    Submission submission;
    submission.planFile = "plan.toml";
    submission.id = "run-1";
    submission.nodes = {"n1", "n2", "n3"};
    for (const std::string& node : submission.nodes) set(node, "idle", "none");
    program("sinfo", "cat \"$here\"/nodes/*");
    const auto run = RunStore::create(folder_.path() / "run", submission);
    ASSERT_TRUE(run.ok()) << run.error().text();
    run_.emplace(*run);
  }
  void TearDown() override { setenv("PATH", path_.c_str(), 1); }

  void program(const std::string& name, const std::string& text) {
    const auto file =
        folder_.write(name, "#!/bin/sh\nhere='" + folder_.path().string() + "'\n" + text + "\n");
    std::filesystem::permissions(file, std::filesystem::perms(0755));
  }
  void set(const std::string& node, const std::string& state, const std::string& reason) {
    folder_.write("nodes/" + node, fmt::format("{}|{}|(null)|root|{:<512}\n", node, state, reason));
  }
  /// `refusal` is what scontrol does for n2; for others it drains with our reason, or takes the drain away.
  void scontrol(const std::string& refusal) {
    program("scontrol",
            "node=${2#NodeName=}\nshow() { printf '%s|%s|(null)|root|%-512s\\n' \"$node\" \"$1\" "
            "\"$2\" >\"$here/nodes/$node\"; }\n[ $node != n2 ] || {\n" +
                refusal +
                "\n}\ncase $3 in\n*=DRAIN) show drained \"${4#Reason=}\" ;;\n*) show idle none ;;\nesac");
  }
  [[nodiscard]] std::vector<NodeAction> actions() const {
    return planDrain("run-1", {{"n1", "gemm"}, {"n2", "gemm"}, {"n3", "gemm"}}, *readNodes());
  }
  [[nodiscard]] std::vector<std::string> drained() const {
    std::vector<std::string> names;
    const auto list = drainedByRun(*run_);
    for (const NodeAction& node : *list) names.push_back(node.node);
    return names;
  }

  muster::testing::TempDir folder_;
  std::string path_;
  std::optional<RunStore> run_;
};

constexpr const char* kRefuses =
    "echo 'slurm_update error: Requested operation is presently disabled' >&2; exit 1";
constexpr const char* kSilent = "echo 'slurm_update error: Unable to contact slurm controller' >&2; exit 1";

TEST_F(Refusal, OfOneNodeKeepsNoOtherFromBeingDrained) {
  scontrol(kRefuses);
  auto all = actions();
  const Status status = applyDrain(*run_, all);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kUsage);
  EXPECT_THAT(status.error().text(), HasSubstr("not drained, because Slurm refused (see above): n2"));
  EXPECT_THAT(all[1].why, HasSubstr("Requested operation is presently disabled"));
  EXPECT_TRUE(readNodes()->at("n3").drained());
  EXPECT_THAT(drained(), ElementsAre("n1", "n3"));
}

TEST_F(Refusal, IsNoneWhereTheNodeIsDrainedAllTheSame) {
  scontrol("show drained \"${4#Reason=}\"\nexit 1");
  auto all = actions();
  const Status status = applyDrain(*run_, all);
  EXPECT_TRUE(status.ok()) << status.error().text();
  EXPECT_THAT(drained(), ElementsAre("n1", "n2", "n3"));
}

TEST_F(Refusal, WithAnotherUsersDrainIsNotOurDrain) {
  scontrol("show drained fan\nexit 1");
  auto all = actions();
  EXPECT_FALSE(applyDrain(*run_, all).ok());
  EXPECT_THAT(drained(), ElementsAre("n1", "n3"));
}

/// The controller may have heard it and drain the node later.
TEST_F(Refusal, IsNotWhatAControllerThatDoesNotAnswerSays) {
  scontrol(kSilent);
  auto all = actions();
  const Status status = applyDrain(*run_, all);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().text(), HasSubstr("stopped at n2: Slurm's controller does not answer"));
  EXPECT_THAT(drained(), ElementsAre("n1", "n2"));
  EXPECT_FALSE(readNodes()->at("n3").drained());
}

TEST_F(Refusal, OfOneNodeKeepsNoOtherFromBeingGivenBack) {
  scontrol(":");
  auto all = actions();
  ASSERT_TRUE(applyDrain(*run_, all).ok());
  ASSERT_THAT(drained(), ElementsAre("n1", "n2", "n3"));
  scontrol(kRefuses);
  auto back = planUndrain(run_->submission(), *drainedByRun(*run_), *readNodes());
  const Status status = applyUndrain(*run_, back);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().text(), HasSubstr("not given back, because Slurm refused (see above): n2"));
  EXPECT_THAT(back[1].why, HasSubstr("Requested operation is presently disabled"));
  EXPECT_FALSE(readNodes()->at("n3").drained());
  EXPECT_THAT(drained(), ElementsAre("n2"));
}

}  // namespace
}  // namespace muster::slurm
