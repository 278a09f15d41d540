// SPDX-License-Identifier: Apache-2.0
// Findings about records themselves, and what they make of their nodes.
#pragma once

#include "reports/fleet/fleet_record.h"

namespace muster::fleet {

/// Takes `node` out of the accepted ones. A node that is worse off keeps its state and its reason.
void blockNode(FleetNode& node, NodeState state, const std::string& reason);

/// Adds a finding about some of the fleet's nodes and takes them out of the accepted ones. Names and paths
/// are filled in from the nodes where the finding has none.
void addFinding(Fleet& fleet, const FleetRecords& records, RecordFinding finding,
                const std::vector<size_t>& nodes, NodeState state);

/// "n1, n2, n3 and 5 more".
std::string shortNames(const std::vector<std::string>& names);

}  // namespace muster::fleet
