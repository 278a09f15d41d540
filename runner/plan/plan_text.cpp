// SPDX-License-Identifier: Apache-2.0
// Reads the stages of a plan's text.
#include "runner/plan/plan_text.h"

#include "runner/inputs/toml_input.h"
#include "runner/plan/loader.h"
#include "runner/plan/node_groups.h"
#include "runner/plan/plan.h"

namespace muster {
namespace {

std::vector<StageOfText> stagesOf(const std::optional<PlanDocument>& document) {
  std::vector<StageOfText> stages;
  if (!document || !document->root.contains("stage") || !document->root["stage"].is_array()) return stages;
  for (const Json& stage : document->root["stage"]) {
    const auto name = stage.is_object() ? stage.find("name") : stage.end();
    if (!stage.is_object() || name == stage.end() || !name->is_string()) return {};
    const Json ranks = stage.value("ranks", Json());
    const double number = ranks.is_number() ? ranks.get<double>() : 0;  // 2.0 is one, too
    const int stated = number > 0 && number < 1e9 ? static_cast<int>(number) : 0;
    const bool required = stage.value("required", Json(true)) != false;
    std::vector<std::string> names = sweepNames(name->get<std::string>(), stage.value("nodes", Json()));
    if (names.empty()) return {};
    const std::vector<int> sweep = sweepOf(stage.value("nodes", Json()));
    for (size_t i = 0; i < names.size(); ++i)
      stages.push_back({std::move(names[i]), stated, required, i < sweep.size() ? sweep[i] : 0, sweep});
    if (stages.size() > kMostStages) return {};
  }
  return stages;
}

}  // namespace

std::vector<StageOfText> stagesInText(const std::string& text) {
  Diagnostics ignored;
  auto toml = InputText::of(text, "plan.toml", kLargestPlan, InputText::From::kFrozen);
  if (toml.ok())
    if (auto stages = stagesOf(loadToml(*toml, ignored)); !stages.empty()) return stages;
  auto lua = InputText::of(text, "plan.lua", kLargestPlan, InputText::From::kFrozen);
  return lua.ok() ? stagesOf(loadLua(*lua, LuaLimits{}, ignored)) : std::vector<StageOfText>();
}

std::string skuNamedIn(const std::string& text) {
  auto input = InputText::of(text, "plan.toml", kLargestPlan, InputText::From::kFrozen);
  if (!input.ok()) return "";
  const auto plan = readTomlInput(*input);
  if (!plan.ok() || !plan->root().contains("sku") || !plan->root()["sku"].is_string()) return "";
  return plan->root()["sku"] == "auto" ? "" : plan->root()["sku"].get<std::string>();
}

}  // namespace muster
