// SPDX-License-Identifier: Apache-2.0
// Reads the stage names of a plan's text.
#include "runner/plan/stage_names.h"

#include "runner/plan/loader.h"

namespace muster {
namespace {

std::vector<std::string> namesIn(const std::optional<PlanDocument>& document) {
  std::vector<std::string> names;
  if (!document || !document->root.contains("stage") || !document->root["stage"].is_array()) return names;
  for (const Json& stage : document->root["stage"]) {
    const auto name = stage.is_object() ? stage.find("name") : stage.end();
    if (!stage.is_object() || name == stage.end() || !name->is_string()) return {};
    names.push_back(name->get<std::string>());
  }
  return names;
}

}  // namespace

std::vector<std::string> stageNamesIn(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  Diagnostics ignored;
  if (auto names = namesIn(loadToml(text, "plan.toml", ignored)); !names.empty()) return names;
  return namesIn(loadLua(text, "plan.lua", LuaLimits{}, ignored));
}

}  // namespace muster
