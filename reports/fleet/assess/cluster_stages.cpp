// SPDX-License-Identifier: Apache-2.0
// Counts, for each stage, the nodes whose records hold it with scope cluster.
#include "reports/fleet/assess/cluster_stages.h"

#include <map>

#include "runner/core/majority.h"

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

}  // namespace muster::fleet
