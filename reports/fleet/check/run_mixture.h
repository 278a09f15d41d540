// SPDX-License-Identifier: Apache-2.0
// Whether records that name no fleet run look like ones of several runs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reports/fleet/fleet_record.h"

namespace muster::fleet {

/// Nodes whose records are of an earlier run than those of the others, by their indices in `fleet`, with the
/// reason: more nodes were run again since then than were not, or their records end long before those of most
/// nodes begin. Nodes of a later run than most are not among them.
std::map<size_t, std::string> outdatedNodes(const FleetRecords& records,
                                            const std::vector<std::vector<size_t>>& candidates,
                                            const FleetNodes& nodes, const FleetRun& run);

/// What a reader must know where nothing in the records tells one run of the fleet from the next: that some
/// nodes were run again after others' last record, or that a day lies between two nodes' records. Then a node
/// may be accepted for what an earlier run of it says. Empty where the records look like one run.
/// `candidates`: of each node of `fleet`, the indices of all records of its plan.
std::string mixtureNote(const FleetRecords& records, const std::vector<std::vector<size_t>>& candidates,
                        const FleetNodes& nodes, const FleetRun& run);

}  // namespace muster::fleet
