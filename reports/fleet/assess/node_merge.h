// SPDX-License-Identifier: Apache-2.0
// The records of one node put together: jobs of different scopes add up, duplicates are resolved and named.
#pragma once

#include <map>
#include <string_view>

#include "reports/fleet/fleet_record.h"

namespace muster::fleet {

/// Chooses among `candidates` (indices of records of this node and run) those that count and sums them up.
/// Records that ran different stages (`--scope`) belong together. Of two that ran the same stage the latest
/// counts, unless the earlier one says worse: a node that fails and then passes is flaky, and is not accepted
/// by trying again.
void mergeRecords(const FleetRecords& records, std::vector<size_t> candidates, FleetNode& node,
                  std::vector<LeftOut>& duplicates);

/// A stage of a node, and which of the node's records it counts from.
struct ChosenStage {
  const StageSummary* stage;
  size_t record;
};
/// By name. Of several records of a node that have a stage, the first that ran it counts.
std::map<std::string_view, ChosenStage> chosenStages(const FleetRecords& records, const FleetNode& node);

struct FleetCount {
  Accounting accounting;
  std::vector<GroupStage> groups;
};

/// The accounting of the whole fleet: the sum over its nodes, with verdicts that all nodes of a group share
/// counted once.
FleetCount countFleet(const FleetRecords& records, const FleetNodes& nodes);

}  // namespace muster::fleet
