// SPDX-License-Identifier: Apache-2.0
// See plan_check.h.
#include "tests/fuzz/plan_check.h"

#include <algorithm>
#include <numeric>

#include "runner/core/text.h"
#include "runner/plan/loader.h"
#include "runner/plan/lua/lua_plan.h"
#include "runner/plan/validate.h"
#include "tests/runner/plan/sample_catalog.h"

namespace muster::testing {
namespace {

const Catalog& catalog() {
  static const Catalog kCatalog = sampleCatalog();
  return kCatalog;
}

LuaLimits smallLimits() {
  LuaLimits limits;
  limits.instructions = 200'000;
  limits.memory = size_t{8} << 20;
  limits.cpuSeconds = 1;
  return limits;
}

/// A diagnostic must be one safe line with a place, and never blame ourselves.
std::string checkDiagnostic(const Diagnostic& diagnostic) {
  const std::string text = diagnostic.text();
  if (diagnostic.mistake.message.empty() || diagnostic.at.file.empty())
    return "a diagnostic is empty: " + text;
  if (printable(text, text.size()) != text) return "a diagnostic is not printable: " + printable(text);
  if (text.size() > 5000) return "a diagnostic is too long: " + printable(text);
  // At its start: further on, a plan may hold these very words.
  for (const char* fault :
       {"the plan ended its process", "the plan could not be evaluated", "its evaluation did not return"})
    if (diagnostic.mistake.message.starts_with(fault)) return "a plan broke its evaluation: " + text;
  return "";
}

/// A plan must be one that can run: cases for each stage, unique ids, needs in an order.
std::string checkPlan(const Plan& plan) {
  if (plan.stages.empty()) return "a plan without stages was accepted";
  std::vector<size_t> order = executionOrder(plan);
  std::sort(order.begin(), order.end());
  std::vector<size_t> all(plan.stages.size());
  std::iota(all.begin(), all.end(), size_t{0});
  if (order != all) return "the order leaves stages out";
  std::set<std::string> ids;
  for (const Stage& stage : plan.stages) {
    if (stage.cases.empty()) return "stage " + stage.name + " has no case";
    if (!(stage.timeout > 0) || stage.repeat < 1 || stage.attempts < 1)
      return "stage " + stage.name + " never runs";
    for (const Case& c : stage.cases)
      if (!ids.insert(c.id).second) return "two cases are called " + c.id;
    for (const Expectation& expectation : stage.expectations) {
      auto again = expectationFromJson(toJson(expectation), "expectation");
      if (!again.ok()) return "an expectation cannot be recorded: " + again.error().text();
    }
  }
  return "";
}

std::string checkOutcome(const PlanOutcome& outcome) {
  bool refused = false;
  for (const Diagnostic& diagnostic : outcome.diagnostics) {
    refused = refused || !diagnostic.warning;
    if (std::string problem = checkDiagnostic(diagnostic); !problem.empty()) return problem;
  }
  if (outcome.plan.has_value() == refused) return "a plan is neither accepted nor refused";
  return outcome.plan ? checkPlan(*outcome.plan) : "";
}

std::string checkDocument(const std::optional<PlanDocument>& document, Diagnostics& diagnostics) {
  PlanOutcome outcome;
  if (document) {
    Plan plan = validatePlan(*document, catalog(), {}, diagnostics);
    if (!diagnostics.hasErrors()) outcome.plan = std::move(plan);
  }
  outcome.diagnostics = diagnostics.sorted();
  return checkOutcome(outcome);
}

}  // namespace

std::string checkTomlPlan(const std::string& text) {
  return checkOutcome(parsePlan(text, "plan.toml", catalog(), {}));
}

std::string checkLuaPlan(const std::string& text) {
  Diagnostics diagnostics;
  auto input = InputText::of(text, "plan.lua", kLargestPlan, InputText::From::kFrozen);
  if (!input.ok()) return "";
  return checkDocument(loadLua(*input, smallLimits(), diagnostics), diagnostics);
}

std::string checkLuaPlanHere(const std::string& text) {
  Diagnostics diagnostics;
  volatile int line = 0;
  return checkDocument(
      readLuaMessage(evaluateLuaPlan(text, {}, smallLimits(), &line), "plan.lua", diagnostics), diagnostics);
}

}  // namespace muster::testing
