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

/// What a check of records found; the nodes that its findings are about are out of the accepted ones.
struct RecordChecks {
  std::vector<RecordFinding> findings;
  std::vector<std::string> notes;
  size_t rejudged = 0;  ///< records that count and were judged again
};

/// The finding, once the nodes at `about`, which it is about, are out of the accepted ones. Names and paths
/// are filled in from them where it has none.
RecordFinding settled(RecordFinding finding, const std::vector<size_t>& about, NodeState state,
                      const FleetRecords& records, FleetNodes& nodes);

/// "n1, n2, n3 and 5 more".
std::string shortNames(const std::vector<std::string>& names);

}  // namespace muster::fleet
