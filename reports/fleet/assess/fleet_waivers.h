// SPDX-License-Identifier: Apache-2.0
// The waivers of a whole fleet: what each of them covers, and which of them are of no use.
#pragma once

#include "reports/fleet/fleet_record.h"

namespace muster::fleet {

/// Lists the waivers that the fleet was given, and those under which the records that count were made, with
/// what they cover there.
void countWaivers(const FleetRecords& records, Fleet& fleet);

/// Counts a fleet-relative verdict of `node` for the waivers that name it. The one that covers it if it is a
/// failure, or nullptr.
const Waiver* waiveDeferred(const DeferredKey& key, const FleetNode& node, const std::string& device,
                            const FleetRecords& records, Outcome outcome, Fleet& fleet);

/// What became of each waiver, when everything is judged. One that no node of the fleet has a match for is an
/// error of the fleet, and counted as one.
void settleWaivers(const FleetRecords& records, Fleet& fleet);

}  // namespace muster::fleet
