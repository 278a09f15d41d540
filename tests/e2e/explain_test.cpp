// SPDX-License-Identifier: Apache-2.0
// `muster explain`: what it lists is what a run then judges by.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "runner/core/json.h"
#include "tests/e2e/muster.h"

namespace muster::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string planFile(const std::string& name) {
  return (distDir() / "share/muster/plans" / (name + ".toml")).string();
}

struct PlanOnSku {
  const char* plan;
  const char* sku;
  const char* scenario;
  int nodes = 1;

  /// As options of `muster explain` and `muster run`.
  [[nodiscard]] std::vector<std::string> options() const {
    std::vector<std::string> options = {"--sku", sku};
    if (nodes > 1) options.insert(options.end(), {"--nodes", std::to_string(nodes)});
    return options;
  }
  [[nodiscard]] Json explained() const {
    const auto said = muster("explain", {"--simulated", "--json"});
    EXPECT_EQ(said.exitCode, 0) << plan << " " << sku << said.err;
    return said.exitCode == 0 ? Json::parse(said.out) : Json();
  }
  [[nodiscard]] ProcessResult run(const std::filesystem::path& out) const {
    return muster("run", {"--simulate", testing::scenario(scenario), "--plain", "--out", out.string()});
  }
  /// Where the run's records are.
  [[nodiscard]] std::vector<std::filesystem::path> records(const std::filesystem::path& out) const {
    std::vector<std::filesystem::path> all;
    for (int node = 0; node < nodes; ++node)
      all.push_back(nodes == 1 ? out : out / fmt::format("sim-node-{:04}", node));
    return all;
  }

 private:
  [[nodiscard]] ProcessResult muster(const std::string& command, const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {command, planFile(plan)};
    const auto own = options();
    arguments.insert(arguments.end(), own.begin(), own.end());
    arguments.insert(arguments.end(), more.begin(), more.end());
    ProcessOptions patient;
    patient.timeout = 300;
    return runMuster(arguments, patient);
  }
};

/// The stage's entry in what `muster explain --json` printed.
const Json& stageIn(const Json& explained, const std::string& name) {
  for (const Json& stage : explained["stages"])
    if (stage["stage"] == name) return stage;
  static const Json none;
  return none;
}

class Explained : public ::testing::TestWithParam<PlanOnSku> {};

/// Of one node's record. How many limits it was judged by.
size_t compare(const Json& record, const Json& explained) {
  EXPECT_EQ(record["stages"].size(), explained["stages"].size() + 1) << "the inventory is none of the plan's";
  size_t limits = 0;
  for (const Json& stage : record["stages"]) {
    if (stage["plugin"] == "env" && stage["test"] == "inventory") continue;
    const Json& told = stageIn(explained, stage["name"]);
    EXPECT_TRUE(told.is_object()) << stage["name"];
    if (stage["state"] != "ran" || !told.is_object()) continue;
    EXPECT_EQ(told["not_run"], "") << stage["name"];
    EXPECT_EQ(stage["cases"], told["cases"]) << stage["name"];
    Json judgedBy = stage["evidence"]["expectations"], promised = told["limits"];
    limits += judgedBy.size();
    std::sort(judgedBy.begin(), judgedBy.end());
    std::sort(promised.begin(), promised.end());
    EXPECT_EQ(judgedBy, promised) << stage["name"];
  }
  return limits;
}

TEST_P(Explained, HasEveryLimitAndCaseOfTheRunAndNoOther) {
  const PlanOnSku& one = GetParam();
  const TempDir dir;
  const Json explained = one.explained();
  ASSERT_TRUE(explained.is_object());
  const auto run = one.run(dir.path() / "run");
  ASSERT_TRUE(run.exitCode == 0 || run.exitCode == 1 || run.exitCode == 3) << run.out << run.err;
  for (const auto& node : one.records(dir.path() / "run"))
    EXPECT_GT(compare(Json::parse(readWhole(node / "record.json")), explained), 20u) << node;
}

INSTANTIATE_TEST_SUITE_P(
    PlansAndSkus, Explained,
    ::testing::Values(PlanOnSku{"node-quick", "h100-sxm5-80gb", "h100x8-healthy"},
                      PlanOnSku{"node-full", "h100-sxm5-80gb", "h100x8-healthy"},
                      PlanOnSku{"node-full", "h100-sxm5-80gb", "h100x8-throttling"},
                      PlanOnSku{"nccl", "h200-sxm", "h200x8-healthy"},
                      PlanOnSku{"node-quick", "h200-sxm", "h200x8-healthy"},
                      PlanOnSku{"node-full", "b200", "b200x8-healthy"},
                      PlanOnSku{"node-full", "a100-sxm4-80gb", "a100x8-healthy"},
                      PlanOnSku{"cluster", "h100-sxm5-80gb", "h100x8-cluster-healthy"},
                      PlanOnSku{"scaling", "h100-sxm5-80gb", "h100x8-cluster-healthy", 4},
                      PlanOnSku{"scaling", "h100-sxm5-80gb", "h100x8-cluster-healthy", 3}));

TEST(Explain, ShowsWhatAPlanComesTo) {
  const auto said = runMuster({"explain", planFile("node-quick"), "--sku", "h100-sxm5-80gb"});
  EXPECT_EQ(said.exitCode, 0) << said.err;
  EXPECT_THAT(said.out,
              HasSubstr("plan node-quick, SKU h100-sxm5-80gb, backend cuda, 1 node with 8 devices"));
  EXPECT_THAT(said.out, HasSubstr("gemm  compute.gemm: scope device, 8 ranks"));
  EXPECT_THAT(said.out, HasSubstr("telemetry  beside memory, host-copy"));
  // Whose limits are not known yet is said, and what the plan changes is shown.
  const auto open = runMuster({"explain", planFile("node-quick"), "--set", "gemm.timeout=7m"});
  EXPECT_EQ(open.exitCode, 0) << open.err;
  EXPECT_THAT(open.out, HasSubstr("SKU found by the devices at run time (--sku NAME shows its limits)"));
  EXPECT_THAT(open.out, HasSubstr("at most 7m"));
  EXPECT_THAT(open.out, Not(HasSubstr("[profile")));
}

TEST(Explain, CountsRanksOfAllNodes) {
  const auto said =
      runMuster({"explain", planFile("cluster"), "--sku", "h100-sxm5-80gb", "--nodes", "4", "--json"});
  ASSERT_EQ(said.exitCode, 0) << said.err;
  const Json explained = Json::parse(said.out);
  EXPECT_EQ(stageIn(explained, "gemm")["ranks"], 8);
  EXPECT_EQ(stageIn(explained, "ring")["ranks"], 32);
  EXPECT_EQ(stageIn(explained, "rails")["ranks"], 4) << "one on each node";
}

TEST(Explain, RefusesWhatARunWouldRefuse) {
  const auto unknown = runMuster({"explain", planFile("node-quick"), "--sku", "h101"});
  EXPECT_EQ(unknown.exitCode, 2);
  EXPECT_THAT(unknown.err, HasSubstr("no SKU profile \"h101\""));
  const TempDir dir;
  const auto bad =
      runMuster({"explain", dir.write("bad.toml", "schema = 1\nname = \"x\"\nstages = 3\n").string()});
  EXPECT_EQ(bad.exitCode, 2);
  EXPECT_THAT(bad.err, HasSubstr("bad.toml:3"));
}

/// Of every stage, on all SKUs with a healthy scenario. Not of burn-in, whose 22 hours take minutes to
/// simulate and are one parameter.
TEST(Explain, EstimatesTheVirtualTimeOfSimulatedRuns) {
  constexpr PlanOnSku kNodes[] = {{"", "h100-sxm5-80gb", "h100x8-healthy"},
                                  {"", "h200-sxm", "h200x8-healthy"},
                                  {"", "b200", "b200x8-healthy"},
                                  {"", "a100-sxm4-80gb", "a100x8-healthy"}};
  constexpr PlanOnSku kCluster = {"cluster", "h100-sxm5-80gb", "h100x8-cluster-healthy"};
  std::vector<PlanOnSku> runs = {{"rdma", "h100-sxm5-80gb", "h100x8-hca-healthy"}, kCluster};
  runs.push_back({"cluster", kCluster.sku, kCluster.scenario, 4});
  runs.push_back({"scaling", kCluster.sku, kCluster.scenario, 2});
  runs.push_back({"nccl", kCluster.sku, kCluster.scenario});
  for (const char* plan : {"node-quick", "node-full"})
    for (const PlanOnSku& node : kNodes) runs.push_back({plan, node.sku, node.scenario});
  for (const PlanOnSku& one : runs) {
    const TempDir dir;
    const Json explained = one.explained();
    ASSERT_TRUE(explained.is_object());
    EXPECT_EQ(explained["not_estimated"], Json::array()) << one.plan << " on " << one.sku;
    const auto run = one.run(dir.path() / "run");
    ASSERT_TRUE(run.exitCode == 0 || run.exitCode == 3) << run.out << run.err;
    double took = 0, estimated = 0;
    for (const StageRecord& stage : recordIn(one.records(dir.path() / "run").front()).stages) {
      const Json& told = stageIn(explained, stage.name);
      if (stage.outcome == Outcome::kSkipped || !told.is_object()) continue;  // the scenario has no HCAs
      took += stage.duration;
      estimated += told["estimated_seconds"].get<double>();
      // Single short transfers and the first steps of a stage have a share in the shortest ones.
      EXPECT_NEAR(told["estimated_seconds"].get<double>(), stage.duration, 0.2 * stage.duration + 0.05)
          << stage.name << " of " << one.plan << " on " << one.scenario;
    }
    EXPECT_NEAR(estimated / took, 1, 0.2) << one.plan << " on " << one.scenario << ": " << took << " s";
  }
}

}  // namespace
}  // namespace muster::testing
