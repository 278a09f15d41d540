// SPDX-License-Identifier: Apache-2.0
// Suspects: devices, nodes, links, switches and rails that should be looked at, each with its evidence.
#pragma once

#include "reports/fleet/assess/blame.h"
#include "reports/fleet/assess/peer_table.h"
#include "reports/fleet/fleet_record.h"

namespace muster::fleet {

/// What the peers of one table name, added to the suspects; figures that are too few to tell become notes.
Status addOutliers(const PeerTable& table, const FleetRecords& records, const FleetOptions& options,
                   Fleet& fleet);

/// Devices, links and nodes that failed their own limits or fleet-relative ones, or that others name.
void addFailures(const FleetRecords& records, const BlameTable& blame, Fleet& fleet);

/// Switches under which far more nodes are suspect than elsewhere, and rails: the same device number on many
/// nodes.
void addCommonCauses(const FleetOptions& options, Fleet& fleet);

}  // namespace muster::fleet
