// SPDX-License-Identifier: Apache-2.0
// Compares the stages of a record with those of its plan, and redacted records with their originals.
#include "reports/fleet/read/stage_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "runner/core/text.h"
#include "runner/record/record_check.h"

namespace muster::fleet {
namespace {

std::vector<std::string> stagesOf(const NodeSummary& node, const FleetNames& names) {
  std::vector<std::string> found;
  for (const StageSummary& stage : node.stages) found.push_back(names.texts[stage.name]);
  return found;
}

/// For each plan of the records: its stages, as they are known or as most nodes have them. Of as many, the
/// longer list.
PlanStages stagesByPlan(const FleetRecords& records, PlanStages known) {
  std::map<std::string, std::map<std::vector<std::string>, std::set<std::string>>> votes;
  for (const NodeSummary& node : records.nodes)
    if (!known.contains(node.planSha256))
      votes[node.planSha256][stagesOf(node, *records.names)].insert(node.node);
  for (const auto& [plan, lists] : votes) {
    auto& most = known[plan].names;
    size_t count = 0;
    for (const auto& [list, nodes] : lists)
      if (nodes.size() > count || (nodes.size() == count && list.size() > most.size())) {
        most = list;
        count = nodes.size();
      }
    std::erase_if(most, [](const std::string& name) { return isOwnStage(name); });
  }
  return known;
}

/// Whether it took no part in a stage in which its plan has one for it, and that does not count against it.
std::string missedPart(const StageSummary& stage, const NodeSummary& node, const PlannedPart& planned) {
  const bool skipped = stage.state == StageState::kSkipped && stage.accounting.requiredSkips == 0;
  if (stage.required && node.partial.empty() && skipped && planned.state != StageState::kSkipped)
    return "the skip of stage {} blocks nothing, and its plan requires it";
  if (stage.state == StageState::kIdle && planned.state != StageState::kIdle)
    return "it was idle in stage {}, and its plan has a part for it";
  if (stage.state == StageState::kRan && planned.state != StageState::kRan)
    return "it ran stage {}, in which its plan has no part for it";
  if (stage.state == StageState::kRan && stage.scope == Scope::kCluster &&
      planned.state == StageState::kRan && node.nodeCount > 1 && stage.groupNodes != planned.nodes)
    return "its group in stage {} has another number of nodes than its plan says";
  return "";
}

}  // namespace

void sortByPath(std::vector<Quarantined>& list) {
  std::sort(list.begin(), list.end(),
            [](const Quarantined& a, const Quarantined& b) { return a.path < b.path; });
}

void setAsideIncomplete(FleetRecords& records, PlanStages stages) {
  const PlanStages wanted = stagesByPlan(records, std::move(stages));
  std::erase_if(records.nodes, [&](const NodeSummary& node) {
    const StagesOfPlan& plan = wanted.at(node.planSha256);
    std::string difference = stageDifference(stagesOf(node, *records.names), plan.names);
    for (const StageSummary& stage : node.stages) {
      const std::string& name = records.names->texts[stage.name];
      std::string missed = !stage.required && plan.required.contains(name)
                               ? "stage {} may be skipped, and its plan requires it"
                               : "";
      if (missed.empty() && plan.part && !isOwnStage(name))
        missed = missedPart(stage, node, plan.part(name, node.nodeRank, node.nodeCount));
      if (!missed.empty()) difference = fmt::format(fmt::runtime(missed), printable(name, 80));
    }
    if (!difference.empty())
      records.quarantined.push_back({node.path, node.node, "edited or truncated: " + difference});
    return !difference.empty();
  });
  sortByPath(records.quarantined);
}

void setAsideCopies(FleetRecords& records) {
  std::map<std::string, std::string> first;  // path by digest
  for (const NodeSummary& node : records.nodes) {
    const auto [at, fresh] = first.emplace(node.sha256, node.path);
    if (!fresh) at->second = std::min(at->second, node.path);
  }
  std::erase_if(records.nodes, [&](const NodeSummary& node) {
    const std::string& kept = first.at(node.sha256);
    if (kept == node.path) return false;
    records.quarantined.push_back({node.path, node.node, "a copy of " + kept});
    return true;
  });
  sortByPath(records.quarantined);
}

void setAsideRedacted(FleetRecords& records) {
  std::map<std::string, std::string> paths;
  for (const NodeSummary& node : records.nodes) paths.emplace(node.sha256, node.path);
  std::erase_if(records.nodes, [&](const NodeSummary& node) {
    const auto original = paths.find(node.redactedFrom);
    if (original == paths.end()) return false;
    records.quarantined.push_back({node.path, node.node, "a redacted copy of " + original->second});
    return true;
  });
  sortByPath(records.quarantined);
}

}  // namespace muster::fleet
