// SPDX-License-Identifier: Apache-2.0
// Which stages run over several nodes, and which node each record was in that run: most records say so, and
// not one alone.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "reports/fleet/check/record_finding.h"
#include "reports/fleet/fleet_record.h"

namespace muster::fleet {

/// The stages, by their numbers in FleetNames::texts, that most of the nodes with a record hold with scope
/// cluster. What another record says of others in a stage of its own counts for its own node only.
std::set<uint32_t> clusterStages(const FleetRecords& records, const FleetNodes& nodes);

/// The number of nodes that most records of runs with several nodes give, by the fleet's id. Nothing where
/// they do not agree.
std::map<std::string, int> nodeCounts(const FleetRecords& records, const FleetNodes& nodes);

/// Names each node that gives another number than most, and those that claim one rank: what the others say of
/// them would not reach them.
RecordChecks checkRanks(const FleetRecords& records, FleetNodes& nodes);

}  // namespace muster::fleet
