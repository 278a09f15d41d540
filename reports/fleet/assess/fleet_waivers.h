// SPDX-License-Identifier: Apache-2.0
// The waivers of a whole fleet: what each of them covers, and which of them are of no use.
#pragma once

#include "reports/fleet/fleet_record.h"

namespace muster::fleet {

/// The waivers in force, those of the fleet's own file first.
using FleetWaivers = std::vector<FleetWaiver>;

/// The waivers that the fleet was given, and those under which the records that count were made, with what
/// they cover there.
FleetWaivers countWaivers(const FleetRecords& records, const FleetNodes& nodes);

/// Counts a fleet-relative verdict of `node` for the waivers that name it. The one that covers it if it is a
/// failure, or nullptr.
const Waiver* waiveDeferred(const DeferredKey& key, const FleetNode& node, const DeferredSummary& verdict,
                            Outcome outcome, const FleetRecords& records, FleetWaivers& waivers);

/// What became of each waiver, when everything is judged. One that no node of the fleet has a match for is an
/// error of the fleet (how many there are), or of the few nodes whose records alone name it.
size_t settleWaivers(const FleetRecords& records, FleetNodes& nodes, FleetWaivers& waivers);

/// Waivers of records that cover something and had expired `at` this time (seconds since 1970), though they
/// were good when their runs began; a line each. One of the fleet's file with the same text renews them.
std::vector<std::string> expiredWaivers(const FleetWaivers& waivers, double at);

}  // namespace muster::fleet
