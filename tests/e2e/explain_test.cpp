// SPDX-License-Identifier: Apache-2.0
// `muster explain`: what it lists is what a run then judges by.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "runner/core/json.h"
#include "tests/e2e/muster.h"

namespace muster::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct PlanOnSku {
  const char* plan;
  const char* sku;
  const char* scenario;
};

std::string planFile(const std::string& name) {
  return (distDir() / "share/muster/plans" / (name + ".toml")).string();
}

/// The stage's entry in what `muster explain --json` printed.
const Json& stageIn(const Json& explained, const std::string& name) {
  for (const Json& stage : explained["stages"])
    if (stage["stage"] == name) return stage;
  static const Json none;
  return none;
}

class Explained : public ::testing::TestWithParam<PlanOnSku> {};

TEST_P(Explained, HasEveryLimitAndCaseOfTheRunAndNoOther) {
  const auto [plan, sku, scene] = GetParam();
  const TempDir dir;
  const auto said = runMuster({"explain", planFile(plan), "--sku", sku, "--simulated", "--json"});
  ASSERT_EQ(said.exitCode, 0) << said.err;
  const Json explained = Json::parse(said.out);
  const auto run = runMuster({"run", planFile(plan), "--simulate", scenario(scene), "--sku", sku, "--plain",
                              "--out", (dir.path() / "run").string()});
  ASSERT_TRUE(run.exitCode == 0 || run.exitCode == 1 || run.exitCode == 3) << run.out << run.err;
  const Json record = Json::parse(readWhole(dir.path() / "run/record.json"));
  EXPECT_EQ(record["stages"].size(), explained["stages"].size() + 1) << "the inventory is none of the plan's";
  size_t limits = 0;
  for (const Json& stage : record["stages"]) {
    if (stage["plugin"] == "env" && stage["test"] == "inventory") continue;
    const Json& told = stageIn(explained, stage["name"]);
    ASSERT_TRUE(told.is_object()) << stage["name"];
    if (stage["state"] != "ran") continue;
    EXPECT_EQ(stage["cases"], told["cases"]) << stage["name"];
    Json judgedBy = stage["evidence"]["expectations"], promised = told["limits"];
    limits += judgedBy.size();
    std::sort(judgedBy.begin(), judgedBy.end());
    std::sort(promised.begin(), promised.end());
    EXPECT_EQ(judgedBy, promised) << stage["name"];
  }
  EXPECT_GT(limits, 20u);
}

INSTANTIATE_TEST_SUITE_P(PlansAndSkus, Explained,
                         ::testing::Values(PlanOnSku{"node-quick", "h100-sxm5-80gb", "h100x8-healthy"},
                                           PlanOnSku{"node-full", "h100-sxm5-80gb", "h100x8-healthy"},
                                           PlanOnSku{"node-full", "h100-sxm5-80gb", "h100x8-throttling"},
                                           PlanOnSku{"nccl", "h200-sxm", "h200x8-healthy"},
                                           PlanOnSku{"node-quick", "h200-sxm", "h200x8-healthy"},
                                           PlanOnSku{"node-full", "b200", "b200x8-healthy"},
                                           PlanOnSku{"node-full", "a100-sxm4-80gb", "a100x8-healthy"},
                                           PlanOnSku{"cluster", "h100-sxm5-80gb", "h100x8-cluster-healthy"}));

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

/// Of the plans whose stages name their times, on all SKUs with a healthy scenario. Not of burn-in, whose 22
/// hours take minutes to simulate and are one parameter, nor of collectives, whose time depends on rates.
TEST(Explain, EstimatesTheVirtualTimeOfSimulatedRuns) {
  constexpr PlanOnSku kNodes[] = {{"", "h100-sxm5-80gb", "h100x8-healthy"},
                                  {"", "h200-sxm", "h200x8-healthy"},
                                  {"", "b200", "b200x8-healthy"},
                                  {"", "a100-sxm4-80gb", "a100x8-healthy"}};
  std::vector<PlanOnSku> runs = {{"rdma", "h100-sxm5-80gb", "h100x8-hca-healthy"},
                                 {"cluster", "h100-sxm5-80gb", "h100x8-cluster-healthy"}};
  for (const char* plan : {"node-quick", "node-full"})
    for (const PlanOnSku& node : kNodes) runs.push_back({plan, node.sku, node.scenario});
  for (const auto& [plan, sku, scene] : runs) {
    const TempDir dir;
    const auto said = runMuster({"explain", planFile(plan), "--sku", sku, "--simulated", "--json"});
    ASSERT_EQ(said.exitCode, 0) << plan << " " << sku << said.err;
    ProcessOptions patient;
    patient.timeout = 300;
    runMuster({"run", planFile(plan), "--simulate", scenario(scene), "--out", (dir.path() / "run").string(),
               "--plain"},
              patient);
    const Json explained = Json::parse(said.out);
    double took = 0, estimated = explained["estimated_seconds"];
    for (const StageRecord& stage : recordIn(dir.path() / "run").stages) {
      took += stage.duration;
      const Json& told = stageIn(explained, stage.name);
      // The scenario has no HCAs.
      if (stage.outcome == Outcome::kSkipped && told.is_object() && told["estimated_seconds"].is_number())
        estimated -= told["estimated_seconds"].get<double>();
    }
    EXPECT_NEAR(estimated / took, 1, 0.2) << plan << " on " << scene << ": " << took << " s";
  }
}

}  // namespace
}  // namespace muster::testing
