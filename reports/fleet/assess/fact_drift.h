// SPDX-License-Identifier: Apache-2.0
// Configuration drift of a fleet: inventory facts in which nodes of like SKU differ from the majority.
#pragma once

#include "reports/fleet/fleet_record.h"

namespace muster::fleet {

/// Every fact that is not the same on all nodes (or devices) of one SKU, those with the fewest odd ones
/// first. Lacking a fact that others have counts as a value. Facts that each node has of its own (addresses)
/// are no drift.
std::vector<FactDrift> findFactDrift(const FleetRecords& records, const FleetNodes& nodes);

}  // namespace muster::fleet
