// SPDX-License-Identifier: Apache-2.0
// The shipped plans and profiles against the shipped plugins: every name, unit, label and parameter is real.
#include <gtest/gtest.h>

#include <algorithm>

#include "runner/core/toml/toml_document.h"
#include "runner/metrics/expectation_reader.h"
#include "runner/plan/plan.h"
#include "runner/sku/profile.h"
#include "tests/plans/shipped_catalog.h"

namespace muster {
namespace {

const Catalog& catalog() {
  return testing::shippedCatalog();
}

std::map<std::string, Plan> readyPlans() {
  std::map<std::string, Plan> plans;
  for (const auto& entry : std::filesystem::directory_iterator(testing::sourceDir() / "plans")) {
    const auto extension = entry.path().extension();
    if (extension != ".toml" && extension != ".lua") continue;
    PlanOutcome outcome = loadPlan(entry.path(), catalog(), {});
    for (const Diagnostic& diagnostic : outcome.diagnostics) ADD_FAILURE() << diagnostic.text();
    if (outcome.plan) plans[entry.path().stem().string()] = *outcome.plan;
  }
  return plans;
}

TEST(ReadyPlans, AreValidAndNamedAsTheirFiles) {
  const auto plans = readyPlans();
  for (const char* name : {"quickstart", "environment", "gemm-sweep", "node-quick", "node-full", "burn-in",
                           "train-host", "nccl", "collective-host", "cluster", "rdma", "a4-gke", "compact",
                           "idle-hourly", "kuberay-smoke", "scaling", "storage"})
    ASSERT_EQ(plans.count(name), 1u) << name;
  for (const auto& [name, plan] : plans) {
    EXPECT_EQ(plan.name, name);
    EXPECT_FALSE(plan.description.empty()) << name;
  }
}

TEST(ReadyPlans, AndProfilesLieFarBelowTheBoundOfExpectations) {
  const auto isFarBelow = [](const std::string& name, size_t expectations) {
    EXPECT_LT(10 * expectations, ExpectationBudget{}.expectations) << name;
  };
  for (const auto& [name, plan] : readyPlans()) {
    size_t all = 0;
    for (const Stage& stage : plan.stages) all += stage.expectations.size();
    isFarBelow(name, all);
  }
  const auto profiles = loadProfiles(testing::sourceDir() / "plans" / "skus", &catalog());
  ASSERT_TRUE(profiles.ok()) << profiles.error().text();
  for (const auto& [name, profile] : *profiles) isFarBelow(name, profile.expectations.size());
}

TEST(ReadyPlans, GiveSourceAndRemedyOfEveryExpectation) {
  for (const auto& [name, plan] : readyPlans()) {
    for (const Stage& stage : plan.stages) {
      for (const Expectation& e : stage.expectations) {
        EXPECT_FALSE(e.source.empty()) << name << " " << stage.name << " " << e.metric;
        EXPECT_FALSE(e.remedy.empty()) << name << " " << stage.name << " " << e.metric;
      }
    }
  }
}

/// Metrics of the plan's stages that a run must judge, and that nothing covers.
std::vector<std::string> unjudged(const Plan& plan, const Profile& profile) {
  std::vector<std::string> found;
  for (const Stage& stage : plan.stages) {
    for (const MetricSpec& metric : catalog().plugin(stage.plugin)->test(stage.test)->metrics) {
      const std::string name = stage.plugin + "." + metric.name;
      // That a rate does not drop says nothing of its level.
      const auto covers = [&](const Expectation& e) {
        return e.metric == name && e.kind != CheckKind::kDropMax;
      };
      const bool covered = metric.informational ||
                           std::any_of(metric.standing.begin(), metric.standing.end(), covers) ||
                           std::any_of(stage.expectations.begin(), stage.expectations.end(), covers) ||
                           std::any_of(profile.expectations.begin(), profile.expectations.end(), covers);
      if (!covered) found.push_back(stage.name + ": " + name);
    }
  }
  return found;
}

TEST(ReadyPlans, LeaveNothingUnjudgedUnderTheirProfiles) {
  auto profiles = loadProfiles(testing::sourceDir() / "plans" / "skus", &catalog());
  ASSERT_TRUE(profiles.ok()) << profiles.error().text();
  for (const auto& [name, plan] : readyPlans()) {
    for (const auto& [sku, profile] : *profiles) {
      if ((plan.backend == "host") != (sku == "host")) continue;
      EXPECT_EQ(unjudged(plan, profile), std::vector<std::string>{}) << name << " under " << sku;
    }
  }
}

TEST(ReadyPlans, OfGpusJudgeAnUnknownModelByPeakPeersAndStability) {
  for (const auto& [name, plan] : readyPlans()) {
    if (plan.backend != "cuda") continue;
    for (const Stage& stage : plan.stages) {
      // The best over shapes and algorithms is reported, not judged: peers would not compare like with like.
      if (stage.plugin != "compute" || stage.test == "best") continue;
      for (CheckKind kind : {CheckKind::kOfPeak, CheckKind::kWithin, CheckKind::kCvMax}) {
        EXPECT_TRUE(std::any_of(stage.expectations.begin(), stage.expectations.end(),
                                [&](const Expectation& e) { return e.kind == kind; }))
            << name << " " << stage.name << " " << checkKindName(kind);
      }
    }
  }
}

TEST(ReadyPlans, ProfilesFixParametersThatTheTestsHaveAndSayWhatToDo) {
  auto profiles = loadProfiles(testing::sourceDir() / "plans" / "skus", &catalog());
  ASSERT_TRUE(profiles.ok()) << profiles.error().text();
  EXPECT_EQ(profiles->size(), 19u);
  for (const auto& [name, profile] : *profiles)
    for (const Expectation& e : profile.expectations)
      EXPECT_GT(e.remedy.size(), 20u) << name << " " << e.metric << ": its own, or the plugin's";
}

/// The limit of a table with where it comes from and what to do: what must stand in one place. Empty for a
/// table that takes its limit from a set.
std::string limitOf(const Json& table) {
  std::string limit;
  for (const std::string& check : expectationChecks())
    if (table.contains(check)) limit += check + "=" + table[check].dump() + " ";
  if (limit.empty()) return "";
  for (const char* key : {"tolerance", "of", "severity", "source", "remedy"})
    limit += (table.contains(key) ? table[key].dump() : "") + "\n";
  return limit;
}

void collectTables(const Json& value, std::vector<Json>& out) {
  if (value.is_object() && !limitOf(value).empty()) return out.push_back(value);
  if (!value.is_structured()) return;
  for (const Json& child : value) collectTables(child, out);
}

TEST(ReadyPlans, StateEachLimitWithItsSourceAndRemedyOnce) {
  std::map<std::string, std::string> first;
  size_t limits = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(testing::sourceDir() / "plans")) {
    const std::string file = entry.path().string();
    if (entry.path().extension() != ".toml" || file.find("/scenarios/") != std::string::npos) continue;
    const auto document = TomlDocument::parse(testing::readWhole(file), file);
    ASSERT_TRUE(document.ok()) << document.error().text();
    std::vector<Json> tables;
    for (const char* key : {"expect", "expectations", "stage"})
      if (document->root().contains(key)) collectTables(document->root()[key], tables);
    for (const Json& table : tables) {
      ++limits;
      const auto [before, fresh] = first.emplace(limitOf(table), file);
      EXPECT_TRUE(fresh) << file << " and " << before->second << " both state: " << before->first
                         << "use a set, a list of metrics or labels, or a file that both include";
    }
  }
  EXPECT_GT(limits, 80u);
}

}  // namespace
}  // namespace muster
