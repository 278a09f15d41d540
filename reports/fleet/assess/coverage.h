// SPDX-License-Identifier: Apache-2.0
// Coverage: which records count for which expected node, and in which one state each node is.
#pragma once

#include "reports/fleet/fleet_record.h"

namespace muster::fleet {

/// Fills nodes, duplicates, stale, foreign, quarantined, groups and the plan of `fleet`. States rest on what
/// the nodes' own records say; fleet-relative expectations come later. kUsage for an expectation that names a
/// node twice or none at all.
Status cover(FleetRecords& records, const FleetOptions& options, Fleet& fleet);

/// Counts states and verdicts, and decides. kInternal when the accounting does not balance.
Status decideFleet(Fleet& fleet);

}  // namespace muster::fleet
