// SPDX-License-Identifier: Apache-2.0
// Fleet-relative expectations, which a node's record defers: judged here beside the whole fleet.
#pragma once

#include "reports/fleet/assess/fleet_waivers.h"
#include "reports/fleet/fleet_record.h"

namespace muster::fleet {

struct DeferredVerdicts {
  size_t judged = 0;
  std::vector<DeferredMiss> misses;  ///< the worst first
  DeferredOutcomes outcomes;
};

/// Judges every deferred verdict of the records that count, among nodes of like SKU. Moves it in the
/// accounting of its node, rejects a node that misses, and lists what was not met. Records that were repeated
/// are judged by the bounds of those that count: a node is not accepted by retrying.
DeferredVerdicts judgeDeferred(const FleetRecords& records, FleetWaivers& waivers, FleetNodes& nodes);

}  // namespace muster::fleet
