// SPDX-License-Identifier: Apache-2.0
// Counts, for each stage, the nodes whose records hold it with scope cluster, and compares what they say of
// their run: its number of nodes, and their own.
#include "reports/fleet/assess/cluster_stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "runner/core/majority.h"
#include "runner/core/text.h"

namespace muster::fleet {

std::set<uint32_t> clusterStages(const FleetRecords& records, const FleetNodes& nodes) {
  std::map<uint32_t, size_t> votes;
  size_t withRecord = 0;
  for (const FleetNode& node : nodes) {
    std::set<uint32_t> held;
    for (const size_t i : node.records)
      for (const StageSummary& stage : records.nodes[i].stages)
        if (stage.scope == Scope::kCluster) held.insert(stage.name);
    for (const uint32_t stage : held) ++votes[stage];
    if (!node.records.empty()) ++withRecord;
  }
  std::set<uint32_t> agreed;
  for (const auto& [stage, own] : votes)
    if (isMajority(own, withRecord)) agreed.insert(stage);
  return agreed;
}

namespace {

/// Whether it took part in a stage over several nodes.
bool tookPart(const NodeSummary& record, const std::set<uint32_t>& overNodes) {
  return record.nodeCount > 1 &&
         std::any_of(record.stages.begin(), record.stages.end(), [&](const StageSummary& stage) {
           return overNodes.contains(stage.name) && stage.state != StageState::kElsewhere;
         });
}

}  // namespace

std::map<std::string, int> nodeCounts(const FleetRecords& records, const FleetNodes& nodes) {
  const std::set<uint32_t> overNodes = clusterStages(records, nodes);
  std::map<std::string, std::map<int, size_t>> votes;
  std::map<std::string, size_t> all;
  for (const FleetNode& node : nodes)
    for (const size_t i : node.records)
      if (const NodeSummary& record = records.nodes[i]; tookPart(record, overNodes)) {
        ++votes[record.fleetId][record.nodeCount];
        ++all[record.fleetId];
      }
  std::map<std::string, int> agreed;
  for (const auto& [run, counts] : votes)
    for (const auto& [count, times] : counts)
      if (isMajority(times, all[run])) agreed[run] = count;
  return agreed;
}

RecordChecks checkRanks(const FleetRecords& records, FleetNodes& nodes) {
  const std::set<uint32_t> overNodes = clusterStages(records, nodes);
  const std::map<std::string, int> counts = nodeCounts(records, nodes);
  RecordChecks checks;
  const auto add = [&](std::string text, const std::vector<size_t>& about) {
    RecordFinding finding;
    finding.kind = FindingKind::kBinding;
    finding.text = std::move(text);
    finding.next = "Run the plan on all nodes together once more, and check who could write the records.";
    checks.findings.push_back(settled(std::move(finding), about, NodeState::kIncomplete, records, nodes));
  };
  std::map<std::pair<std::string, int>, std::vector<size_t>> claims;
  for (size_t n = 0; n < nodes.size(); ++n)
    for (const size_t i : nodes[n].records) {
      const NodeSummary& record = records.nodes[i];
      if (!tookPart(record, overNodes)) continue;
      claims[{record.fleetId, record.nodeRank}].push_back(n);
      if (const auto most = counts.find(record.fleetId);
          most != counts.end() && most->second != record.nodeCount)
        add(fmt::format("the record of {} ({}) says that its run had {} nodes, and those of most say {}",
                        nodes[n].name, printable(record.path), record.nodeCount, most->second),
            {n});
    }
  for (const auto& [rank, who] : claims)
    if (who.size() > 1) {
      std::vector<std::string> names;
      for (const size_t n : who) names.push_back(nodes[n].name);
      add(fmt::format("{} each say that they were node {} of the run", shortNames(names), rank.second), who);
    }
  return checks;
}

}  // namespace muster::fleet
