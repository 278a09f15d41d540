// SPDX-License-Identifier: Apache-2.0
// Whether the nodes of a fleet are of the SKU that is expected of them, and were judged by the same limits.
#pragma once

#include "reports/fleet/check/record_finding.h"
#include "reports/fleet/fleet_record.h"

namespace muster::fleet {

/// Sets the SKU that each node must be of, in this order: what the expectation says of the node, the profiles
/// that are pinned, the plan's own `sku`, or what most nodes are of. Adds a finding for each other SKU, and
/// where nodes of one SKU differ in model, number or memory of their GPUs.
RecordChecks checkSkus(const FleetRecords& records, const FleetOptions& options, const FleetRun& run,
                       FleetNodes& nodes);

/// Adds a finding for each node of a SKU that was judged by another profile, build, plugin library or
/// requirement than most nodes of that SKU. Where no value has a majority, all of these nodes are named. A
/// pinned profile counts whatever most nodes have. Records that are put together from several runs on purpose
/// may be of several builds.
RecordChecks checkLimits(const FleetRecords& records, const FleetOptions& options, FleetNodes& nodes);

}  // namespace muster::fleet
