// SPDX-License-Identifier: Apache-2.0
// What a group of like SKU must reach by its profile: the yardstick that a uniformly slow fleet cannot move.
#pragma once

#include "reports/fleet/assess/peer_table.h"
#include "reports/fleet/fleet_record.h"

namespace muster::fleet {

/// Fills expected and tolerance of the table's metrics from the profile under which its nodes were judged: of
/// its min, max, baseline and of_peak expectations the strictest one that covers the figure. A metric without
/// one, and a table without a known profile, are left as they are.
void addExpected(PeerTable& table, const FleetRecords& records, const FleetOptions& options,
                 const Fleet& fleet);

}  // namespace muster::fleet
