// SPDX-License-Identifier: Apache-2.0
// Compares the stages of a record with those of its plan.
#include "reports/fleet/read/stage_check.h"

#include <algorithm>

#include "runner/record/record_check.h"

namespace muster::fleet {
namespace {

std::vector<std::string> stagesOf(const NodeSummary& node, const FleetNames& names) {
  std::vector<std::string> found;
  for (const StageSummary& stage : node.stages) found.push_back(names.texts[stage.name]);
  return found;
}

/// For each plan of the records: its stages, as they are known or as most records have them. Of as many, the
/// longer list.
PlanStages stagesByPlan(const FleetRecords& records, PlanStages known) {
  std::map<std::string, std::map<std::vector<std::string>, size_t>> votes;
  for (const NodeSummary& node : records.nodes)
    if (!known.contains(node.planSha256)) ++votes[node.planSha256][stagesOf(node, *records.names)];
  for (const auto& [plan, lists] : votes) {
    auto& most = known[plan];
    size_t count = 0;
    for (const auto& [list, times] : lists)
      if (times > count || (times == count && list.size() > most.size())) {
        most = list;
        count = times;
      }
    std::erase_if(most, [](const std::string& name) { return isOwnStage(name); });
  }
  return known;
}

}  // namespace

void setAsideIncomplete(FleetRecords& records, const PlanStages& stages) {
  const PlanStages wanted = stagesByPlan(records, stages);
  std::erase_if(records.nodes, [&](const NodeSummary& node) {
    const std::string difference =
        stageDifference(stagesOf(node, *records.names), wanted.at(node.planSha256));
    if (!difference.empty())
      records.quarantined.push_back({node.path, node.node, "edited or truncated: " + difference});
    return !difference.empty();
  });
  std::sort(records.quarantined.begin(), records.quarantined.end(),
            [](const Quarantined& a, const Quarantined& b) { return a.path < b.path; });
}

}  // namespace muster::fleet
