// SPDX-License-Identifier: Apache-2.0
// Whether a new record was measured as the accepted ones were: same plan, profile and kind, later, as strict.
#pragma once

#include <string>
#include <vector>

#include "reports/history/delta.h"

namespace muster::history {

/// When the node's records in `accepted` ended, by the node's own clock: others' may be wrong. Where they are
/// lost, when the fleet did.
double acceptedUntil(const DeltaInput& input, const std::vector<size_t>& accepted);

/// Why `node`, measured after the acceptance, cannot stand in for the node's records in `accepted` (indices
/// into input.records.nodes; empty where they are lost); an empty text: it can.
std::string mismatchOf(const DeltaInput& input, const fleet::NodeSummary& node,
                       const std::vector<size_t>& accepted);

}  // namespace muster::history
