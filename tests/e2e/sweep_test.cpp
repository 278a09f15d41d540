// SPDX-License-Identifier: Apache-2.0
// Cluster stages on a part of the nodes: simulated runs, what their records say, and the fleets made of them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/e2e/muster.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;

/// A stage "reduce" of all_reduce with these nodes, and "after" of each node alone, which needs it.
std::string sweepPlan(const std::string& nodes, const std::string& expect = "") {
  return "schema = 1\nname = \"sweep\"\n[[stage]]\nname = \"reduce\"\ntest = \"collective.sweep\"\nscope = "
         "\"cluster\"\nnodes = " +
         nodes +
         "\nparams = { op = \"all_reduce\", dtype = \"bf16\", from = \"64 MiB\", to = \"64 MiB\", iterations "
         "= 3 }\n"
         "expect = [" +
         expect + "]\n[[stage]]\nname = \"after\"\ntest = \"memory.latency\"\nneeds = [\"reduce\"]\n";
}

class Sweep : public ::testing::Test {
 protected:
  ProcessResult run(const std::string& text, int nodes, const std::string& folder = "run",
                    const std::vector<std::string>& more = {}) {
    const fs::path file = dir_.write("plan.toml", text);
    return runMuster(std::vector<std::string>{
                         "run", file.string(), "--simulate", scenario("h100x8-cluster-healthy"), "--plain",
                         "--nodes", std::to_string(nodes), "--out", (dir_.path() / folder).string()} +
                     more);
  }
  [[nodiscard]] Record record(int node, const std::string& folder = "run") const {
    return recordIn(dir_.path() / folder / fmt::format("sim-node-{:04}", node));
  }
  /// `muster fleet` over these folders, with so many nodes expected.
  ProcessResult fleet(int nodes, const std::string& folder = "run") {
    std::string names;
    for (int node = 0; node < nodes; ++node) names += fmt::format("sim-node-{:04}\n", node);
    return runMuster({"fleet", (dir_.path() / folder).string(), "--expect",
                      dir_.write("nodes.txt", names).string(), "--out", (dir_.path() / "fleet").string()});
  }
  /// "ran idle skipped" of a node's groups.
  [[nodiscard]] std::string states(int node) const {
    std::string text;
    for (const StageRecord& stage : record(node).stages)
      if (stage.name.starts_with("reduce")) text += std::string(nameOf(stage.state)) + " ";
    return text;
  }
  TempDir dir_;
};

TEST_F(Sweep, RunsEachGroupOnTheFirstNodesAndLeavesTheOthersIdle) {
  const auto said = run(sweepPlan("[1, 2, \"all\"]"), 4);
  EXPECT_EQ(said.exitCode, 0) << said.out << said.err;
  EXPECT_EQ(states(0), "ran ran ran ");
  EXPECT_EQ(states(1), "idle ran ran ");
  EXPECT_EQ(states(3), "idle idle ran ");
  const Record first = record(0), last = record(3);
  for (const auto& [name, nodes] :
       {std::pair{"reduce-nodes-1", "1"}, {"reduce-nodes-2", "2"}, {"reduce-nodes-all", "4"}}) {
    const StageRecord& stage = stageOf(first, name);
    EXPECT_EQ(std::to_string(stage.group.value("nodes", 0)), nodes);
    EXPECT_EQ(stage.group.value("world_size", 0), 8 * std::stoi(nodes));
    bool labelled = false;
    for (const Measurement& m : stage.measurements)
      if (m.metric == "collective.bus_bandwidth") {
        EXPECT_EQ(m.labels.at("nodes"), nodes);
        EXPECT_EQ(m.labels.at("ranks"), std::to_string(8 * std::stoi(nodes)));
        labelled = true;
      }
    EXPECT_TRUE(labelled) << name;
  }
  const StageRecord& idle = stageOf(last, "reduce-nodes-2");
  ASSERT_EQ(idle.verdicts.size(), 1U);
  EXPECT_EQ(idle.verdicts[0].outcome, Outcome::kSkipped);
  EXPECT_FALSE(idle.verdicts[0].required);
  EXPECT_EQ(idle.reason, "its group has the first 2 of 4 nodes");
  EXPECT_THAT(stageOf(last, "after").log,
              Contains(HasSubstr("it needs reduce-nodes-2, which this node has no part in")));
  EXPECT_THAT(said.out, HasSubstr("idle: its group has the first 2 of 4 nodes"));
  const auto report = runMuster({"report", (dir_.path() / "run/sim-node-0003/record.json").string()});
  EXPECT_THAT(report.out, HasSubstr("1 checks  idle"));
  EXPECT_THAT(readWhole(dir_.path() / "run/sim-node-0003/report.html"),
              HasSubstr("its group has the first 2 of 4 nodes"));
  const auto whole = fleet(4);
  EXPECT_EQ(whole.exitCode, 0) << whole.out << whole.err;
  const Json groups = Json::parse(readWhole(dir_.path() / "fleet/fleet.json"))["groups"];
  ASSERT_EQ(groups.size(), 3U) << groups;
  for (const Json& group : groups) EXPECT_EQ(group["records"], group["nodes"]) << group;
  EXPECT_EQ(runMuster({"judge", (dir_.path() / "run/sim-node-0003/record.json").string(), "--out",
                       (dir_.path() / "again").string()})
                .exitCode,
            0);
  EXPECT_EQ(recordIn(dir_.path() / "again").accounting.counts, last.accounting.counts);
}

TEST_F(Sweep, SkipsLargerGroupsAndBlocksWhereThatLeavesNodesOut) {
  const auto whole = run(sweepPlan("[1, 2, 8, \"all\"]"), 2);
  EXPECT_EQ(whole.exitCode, 0) << whole.out << whole.err;
  EXPECT_EQ(states(0), "ran ran skipped skipped ");
  EXPECT_EQ(stageOf(record(1), "reduce-nodes-8").reason, "its group has 8 nodes, and this run 2");
  EXPECT_THAT(stageOf(record(1), "reduce-nodes-all").reason, HasSubstr("the same group as that of 2"));
  EXPECT_EQ(stageOf(record(1), "after").state, StageState::kRan);

  const auto hidden = run(sweepPlan("[1, 2, 8]"), 3, "hidden");
  EXPECT_EQ(hidden.exitCode, 3) << hidden.out << hidden.err;
  EXPECT_THAT(stageOf(record(2, "hidden"), "reduce-nodes-8").reason,
              HasSubstr("no group of the stage has all of them: add \"all\""));
}

TEST_F(Sweep, LimitsHoldInTheGroupOfTheirSize) {
  const std::string slow =
      R"({ metric = "collective.large_message_bus_bandwidth", where = { ranks = "16" }, min = "10 TB/s" })";
  EXPECT_EQ(run(sweepPlan("[1, \"all\"]", slow), 2).exitCode, 1);
  EXPECT_EQ(stageOf(record(0), "reduce-nodes-1").outcome, Outcome::kUnjudged) << "its own size has no limit";
  EXPECT_EQ(stageOf(record(0), "reduce-nodes-all").outcome, Outcome::kFail);
  const std::string none =
      R"({ metric = "collective.large_message_bus_bandwidth", where = { ranks = "12" }, min = "1 GB/s" })";
  EXPECT_EQ(run(sweepPlan("[1, \"all\"]", none), 2, "typo").exitCode, 3) << "no group has 12";
  EXPECT_EQ(stageOf(record(0, "typo"), "reduce-nodes-all").outcome, Outcome::kError);
  const auto check = runMuster(
      {"check",
       dir_.write(
               "bad.toml",
               sweepPlan("[1, 2]",
                         R"({ metric = "collective.bus_bandwidth", where = { nodes = 3 }, min = "1 GB/s" })"))
           .string()});
  EXPECT_EQ(check.exitCode, 2);
  EXPECT_THAT(check.err + check.out, HasSubstr("no group of this stage has nodes = \"3\""));
}

/// The inventory alone accepts no node.
TEST_F(Sweep, ANodeThatIsIdleInEveryStageIsNotAccepted) {
  std::string text = sweepPlan("[1]");
  text.erase(text.find("[[stage]]\nname = \"after\""));
  EXPECT_EQ(run(text, 2).exitCode, 3);
  EXPECT_EQ(record(0).acceptance, Acceptance::kAccepted);
  EXPECT_EQ(record(1).acceptance, Acceptance::kIncomplete);
  EXPECT_THAT(record(1).reasons, Contains(HasSubstr("the node was idle in every stage of the plan")));
  EXPECT_EQ(fleet(2).exitCode, 3);
  EXPECT_EQ(runMuster({"judge", (dir_.path() / "run/sim-node-0001/record.json").string()}).exitCode, 3);
}

/// Two runs of two nodes are no run of four.
TEST_F(Sweep, AFleetNeedsTheGroupsThatItHasNodesFor) {
  const std::string text = sweepPlan("[2, 4, \"all\"]");
  EXPECT_EQ(run(text, 2, "all/a").exitCode, 0);
  EXPECT_EQ(run(text, 2, "two").exitCode, 0);
  for (int node = 0; node < 2; ++node) {
    Record other = record(node, "two");
    other.node = fmt::format("sim-node-{:04}", node + 2);
    for (Json& device : other.inventory["devices"]) {
      device["serial"] = device.value("serial", "") + "7";
      device["uuid"] = "GPU-" + std::to_string(node) + device.value("id", "");
    }
    other.runId = "run-of-" + other.node;
    fs::create_directories(dir_.path() / "all/b" / other.node);
    std::ofstream(dir_.path() / "all/b" / other.node / "record.json") << recordText(other);
  }
  const auto merged = fleet(4, "all");
  EXPECT_EQ(merged.exitCode, 3) << merged.out << merged.err;
  EXPECT_THAT(merged.out, HasSubstr("stage reduce-nodes-4: no run had a group of 4 nodes"));
}

/// A record in which a node takes itself out of a group.
TEST_F(Sweep, NoMemberOfAGroupIsIdle) {
  ASSERT_EQ(run(sweepPlan("[1, \"all\"]"), 3).exitCode, 0);
  const fs::path file = dir_.path() / "run/sim-node-0002/record.json";
  Record record = *readRecord(file);
  const StageRecord idle = stageOf(record, "reduce-nodes-1");
  for (StageRecord& stage : record.stages) {
    if (stage.name != "reduce-nodes-all") continue;
    for (const Verdict& verdict : stage.verdicts) {
      --record.accounting.counts[static_cast<size_t>(verdict.outcome)];
      --record.accounting.expected;
    }
    stage = idle;
    stage.name = "reduce-nodes-all";
    for (Verdict& verdict : stage.verdicts) verdict.stage = stage.name;
    record.accounting.add(stage.verdicts.at(0));
    ++record.accounting.expected;
  }
  std::ofstream(file) << recordText(record);
  const auto beside = fleet(3);
  EXPECT_EQ(beside.exitCode, 3) << beside.out;
  EXPECT_THAT(beside.out, HasSubstr("it was idle in stage reduce-nodes-all"));
  for (StageRecord& stage : record.stages)
    if (stage.name == "reduce-nodes-all") stage.group["nodes"] = 3;
  std::ofstream(file) << recordText(record);
  const auto refused = runMuster({"report", file.string()});
  EXPECT_EQ(refused.exitCode, 2) << refused.out;
  EXPECT_THAT(refused.err, HasSubstr("it is idle on node 2, which belongs to its group of 3 nodes"));
  EXPECT_NE(fleet(3).exitCode, 0);
}

/// How much of its speed is left to the collectives of one device, and what that does to groups of so many
/// GPUs.
struct Loss {
  int nodes;
  const char* limit;
  double below,
      above;  ///< shares of a device's speed at which the efficiency is just below and above the limit
};

class ScalingLimit : public ::testing::TestWithParam<Loss> {};

/// The last node that this size of group adds has a device with slow collectives: smaller groups scale well.
TEST_P(ScalingLimit, RejectsALossJustBelowItAndAcceptsOneJustAbove) {
  const Loss& loss = GetParam();
  const TempDir dir;
  const std::string healthy = readWhole(scenario("h100x8-cluster-healthy"));
  for (const auto& [speed, accepted] : {std::pair{loss.below, false}, {loss.above, true}}) {
    const fs::path scene = writeScenario(
        dir.path() / "scene.toml",
        healthy + fmt::format("\n[[fault]]\nkind = \"slow\"\nnode = {}\ndevice = 3\nfactor = {}\nops = "
                              "[\"collective\"]\n",
                              loss.nodes - 1, speed));
    const fs::path out = dir.path() / (accepted ? "above" : "below");
    const auto run = runMuster({"run", plan("scaling.toml"), "--simulate", scene.string(), "--plain",
                                "--nodes", std::to_string(loss.nodes), "--out", out.string()});
    EXPECT_EQ(run.exitCode, accepted ? 0 : 1) << speed << run.out << run.err;
    const fs::path node = loss.nodes == 1 ? out : out / "sim-node-0000";
    const Record record = recordIn(node);
    const StageRecord& stage = stageOf(record, fmt::format("train-nodes-{}", loss.nodes));
    EXPECT_EQ(stage.outcome, accepted ? Outcome::kPass : Outcome::kFail);
    for (const Verdict& verdict : stage.verdicts) {
      if (verdict.metric != "train.scaling_efficiency" ||
          verdict.limitText.find(loss.limit) == std::string::npos)
        continue;
      EXPECT_NEAR(verdict.margin, 0, 0.01) << verdict.detail;
      EXPECT_EQ(verdict.outcome, accepted ? Outcome::kPass : Outcome::kFail) << verdict.detail;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Gpus, ScalingLimit,
                         ::testing::Values(Loss{1, "95%", 0.1401, 0.1462}, Loss{2, "90%", 0.0846, 0.0883},
                                           Loss{4, "85%", 0.0711, 0.0727}, Loss{8, "80%", 0.0663, 0.0678}),
                         [](const auto& info) { return std::to_string(8 * info.param.nodes); });

}  // namespace
}  // namespace muster::testing
