// SPDX-License-Identifier: Apache-2.0
// The one metric of each class that the first page shows of every device.
#pragma once

#include "reports/fleet/assess/peer_table.h"

namespace muster::fleet {

/// Fills the key metrics of the table's nodes. `figures` becomes that of the table with most nodes.
void addKeyFigures(const PeerTable& table, FleetNodes& nodes, KeyFigures& figures);

}  // namespace muster::fleet
