// SPDX-License-Identifier: Apache-2.0
// Builds the command that measures a finding again.
#include "runner/record/findings/rerun.h"

#include <algorithm>
#include <set>

#include "runner/core/shell.h"
#include "runner/core/text.h"
#include "runner/record/record_check.h"

namespace muster {
namespace {

bool canRunAlone(const Record& record, const DeviationItem& item) {
  const bool needsOthers = item.stage->scope == Scope::kCluster && record.nodeCount > 1 && !record.simulated;
  return item.stage->state == StageState::kRan && !isOwnStage(item.stage->name) && !needsOthers;
}

bool comparesDevices(const DeviationItem& item) {
  const auto& expectation = item.verdict->expectation;
  return expectation && expectation->kind == CheckKind::kWithin;
}

/// Whether a run of these devices alone measures again, of each, what missed a limit of its own.
bool sufficesOn(const std::vector<std::string>& devices, const Deviation& finding) {
  const auto& items = finding.items;
  const auto alone = [](const DeviationItem& item) {
    return item.stage->scope == Scope::kDevice && !item.verdict->device.empty();
  };
  if (!std::all_of(items.begin(), items.end(), alone)) return false;
  std::set<std::string> sufficient;
  for (const DeviationItem& item : items)
    if (!comparesDevices(item)) sufficient.insert(item.verdict->device);
  return sufficient.size() == devices.size();
}

std::set<std::string> devicesIn(const Record& record) {
  std::set<std::string> ids;
  const auto devices =
      record.inventory.is_object() ? record.inventory.find("devices") : record.inventory.end();
  if (devices == record.inventory.end() || !devices->is_array()) return ids;
  for (const Json& device : *devices)
    if (device.is_object() && device.contains("id") && device["id"].is_string())
      ids.insert(device["id"].get<std::string>());
  return ids;
}

}  // namespace

std::string rerunCommand(const Record& record, const Deviation& finding) {
  const auto& items = finding.items;
  const auto all = [&](const auto& test) { return std::all_of(items.begin(), items.end(), test); };
  if (record.rerun.empty() || !all([&](const auto& item) { return canRunAlone(record, item); })) return "";
  std::vector<std::string> command = record.rerun;
  command.insert(command.end(), {"--only", join(finding.stages(), ",")});
  const std::set<std::string> known = devicesIn(record);
  const std::vector<std::string> devices = finding.devices();
  const bool part = devices.size() < known.size() &&
                    std::all_of(devices.begin(), devices.end(),
                                [&](const std::string& device) { return known.count(device) > 0; });
  if (part && sufficesOn(devices, finding)) command.insert(command.end(), {"--device", join(devices, ",")});
  return shellCommand(command);
}

std::vector<std::string> rerunCommands(const Record& record, const Deviation& finding) {
  const std::string partial = rerunCommand(record, finding);
  return partial.empty() ? finding.reruns() : std::vector<std::string>{partial};
}

}  // namespace muster
