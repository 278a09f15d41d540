// SPDX-License-Identifier: Apache-2.0
// Findings about records themselves, and what they make of their nodes.
#pragma once

#include "reports/fleet/fleet_record.h"

namespace muster::fleet {

/// Takes `node` out of the accepted ones. A node that is worse off keeps its state and its reason.
void blockNode(FleetNode& node, NodeState state, const std::string& reason);

/// What becomes of nodes that differ from the others: `agree` records say one thing, `odd` ones another. One
/// record, which may be forged, never rejects the node of another: of two or more that agree at least one is
/// honest. Else nobody can say which are right, and the odd ones are incomplete.
NodeState stateOfOdd(size_t agree, size_t odd);

/// Adds a finding about some of the fleet's nodes and takes them out of the accepted ones. Names and paths
/// are filled in from the nodes where the finding has none.
void addFinding(Fleet& fleet, const FleetRecords& records, RecordFinding finding,
                const std::vector<size_t>& nodes, NodeState state);

/// "n1, n2, n3 and 5 more".
std::string shortNames(const std::vector<std::string>& names);

}  // namespace muster::fleet
