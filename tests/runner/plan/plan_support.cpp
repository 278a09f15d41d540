// SPDX-License-Identifier: Apache-2.0
// See plan_support.h.
#include "tests/runner/plan/plan_support.h"

#include "tests/runner/plan/sample_catalog.h"

namespace muster::testing {
namespace {

PlanOutcome parse(const std::string& text, const std::string& path,
                  const std::vector<std::string>& overrides) {
  static const Catalog kCatalog = sampleCatalog();
  PlanOptions options;
  for (const std::string& argument : overrides) {
    auto parsed = parseOverride(argument);
    EXPECT_TRUE(parsed.ok()) << argument;
    if (parsed.ok()) options.overrides.push_back(*parsed);
  }
  return parsePlan(text, path, kCatalog, options);
}

Json stageModelOf(const Stage& stage) {
  Json json = {{"name", stage.name},         {"plugin", stage.plugin},         {"test", stage.test},
               {"needs", stage.needs},       {"scope", nameOf(stage.scope)},   {"timeout", stage.timeout},
               {"repeat", stage.repeat},     {"attempts", stage.attempts},     {"ranks", stage.ranks},
               {"required", stage.required}, {"allow_flaky", stage.allowFlaky}};
  for (const Case& c : stage.cases)
    json["cases"].push_back(
        {{"id", c.id}, {"params", c.params}, {"matrix", c.matrix}, {"written", c.written}});
  for (Expectation expectation : stage.expectations) {
    expectation.at.clear();
    json["expectations"].push_back(toJson(expectation));
  }
  return json;
}

}  // namespace

std::string gemmPlan(const std::string& lines) {
  return "schema = 1\nname = \"p\"\nbackend = \"host\"\n[[stage]]\nname = \"gemm\"\nplugin = \"compute\"\n"
         "test = \"gemm\"\n" +
         lines;
}

PlanOutcome parseToml(const std::string& text, const std::vector<std::string>& overrides) {
  return parse(text, "plan.toml", overrides);
}

PlanOutcome parseLua(const std::string& text, const std::vector<std::string>& overrides) {
  return parse(text, "plan.lua", overrides);
}

std::string problemsOf(const PlanOutcome& outcome) {
  std::string all;
  for (const Diagnostic& diagnostic : outcome.diagnostics) all += diagnostic.text() + "\n";
  return all;
}

Plan planOf(const PlanOutcome& outcome) {
  EXPECT_TRUE(outcome.plan.has_value()) << problemsOf(outcome);
  return outcome.plan.value_or(Plan{});
}

std::string modelOf(const Plan& plan) {
  Json json = {
      {"name", plan.name},       {"description", plan.description},           {"sku", plan.sku},
      {"backend", plan.backend}, {"allow_unknown_sku", plan.allowUnknownSku}, {"overrides", plan.overrides}};
  for (const Stage& stage : plan.stages) json["stages"].push_back(stageModelOf(stage));
  return dumpJson(json, 1);
}

void expectProblems(const std::vector<Golden>& all) {
  for (const auto& [input, problems] : all) {
    const PlanOutcome outcome = parseToml(gemmPlan(input));
    EXPECT_EQ(problemsOf(outcome), problems) << input;
    EXPECT_EQ(outcome.plan.has_value(), problems.empty()) << input;
  }
}

}  // namespace muster::testing
