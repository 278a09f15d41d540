// SPDX-License-Identifier: Apache-2.0
// Checks --only and --device, and makes the records of what they leave out.
#include "runner/app/node/partial_run.h"

#include <fmt/format.h>

#include "runner/core/text.h"

namespace muster {
namespace fs = std::filesystem;
namespace {

Error unknownName(const char* option, const char* what, const std::string& name,
                  const std::vector<std::string>& known) {
  return {ErrorCode::kUsage,
          fmt::format("{}: no {} \"{}\"{}; {}s: {}", option, what, printable(name, 80),
                      didYouMean(name, known), what, printable(join(known, ", "), 2000)),
          ""};
}

/// Why a stage that --only names cannot run with the other options; empty: it can.
std::string conflict(const Stage& stage, const RunOptions& options) {
  if (!options.runsScope(stage.scope))
    return fmt::format("its scope is {}, and --scope is {}; remove one of them", nameOf(stage.scope),
                       join(options.scopes, ","));
  if (!options.selection.devices.empty() && stage.scope != Scope::kDevice)
    return fmt::format("its scope is {}, which needs all devices; remove --device", nameOf(stage.scope));
  return "";
}

}  // namespace

Status checkSelection(const Plan& plan, const RunOptions& options) {
  const Selection& selection = options.selection;
  if (!selection.partial()) return {};
  std::vector<std::string> names;
  bool any = false;
  for (const Stage& stage : plan.stages) {
    names.push_back(stage.name);
    any = any || options.runsStage(stage);
    if (!contains(selection.stages, stage.name)) continue;
    if (const std::string why = conflict(stage, options); !why.empty())
      return Error{ErrorCode::kUsage, fmt::format("--only {}: {}", stage.name, why), plan.path.string()};
  }
  for (const std::string& name : selection.stages)
    if (!contains(names, name))
      return unknownName("--only", "stage", name, names).context("plan " + plan.path.string());
  if (any) return {};
  return Error{ErrorCode::kUsage, "--device: the plan has no stage of scope device that this job runs",
               plan.path.string()};
}

Status checkDevices(const Selection& selection, const std::vector<RankSlot>& devices) {
  std::vector<std::string> known;
  known.reserve(devices.size());
  for (const RankSlot& slot : devices) known.push_back(slot.device);
  for (const std::string& name : selection.devices)
    if (!contains(known, name)) return unknownName("--device", "device", name, known);
  return {};
}

std::vector<std::string> rerunCommandOf(const Plan& plan, const RunOptions& options, int rank, int count) {
  std::vector<std::string> command = {"muster", "run", fs::absolute(plan.path).string()};
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) command.insert(command.end(), {option, value});
  };
  const auto addPath = [&](const char* option, const fs::path& path) {
    if (!path.empty()) add(option, fs::absolute(path).string());
  };
  for (const std::string& set : plan.overrides) add("--set", set);
  add("--sku", options.sku);
  addPath("--simulate", options.scenario);
  if (!options.scenario.empty() && count > 1) {
    add("--nnodes", std::to_string(count));
    add("--node-rank", std::to_string(rank));
  }
  for (const fs::path& folder : options.pluginFolders) addPath("--plugins", folder);
  for (const fs::path& folder : options.skuFolders) addPath("--skus", folder);
  if (options.seed != RunOptions().seed) add("--seed", std::to_string(options.seed));
  if (options.strict) command.emplace_back("--strict");
  return command;
}

StageOutcome skippedStage(const Stage& stage, bool blocks, const std::string& why) {
  Stage changed = stage;
  changed.required = blocks;
  StageOutcome outcome = stageNotRun(changed, StageState::kSkipped, why);
  outcome.record.required = stage.required;
  return outcome;
}

StageOutcome selectionStage(const Selection& selection) {
  Stage stage;
  stage.name = kSelectionStage;
  stage.scope = Scope::kNode;
  StageOutcome outcome = stageNotRun(stage, StageState::kSkipped, selection.text());
  outcome.record.verdicts.front().remedy = "To accept the node, run the whole plan";
  return outcome;
}

}  // namespace muster
