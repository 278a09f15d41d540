// SPDX-License-Identifier: Apache-2.0
// The waivers of a whole fleet: what each of them covers, and which of them are of no use.
#pragma once

#include <map>
#include <vector>

#include "reports/fleet/fleet_record.h"

namespace muster::fleet {

/// The waivers in force, those of the fleet's own file first.
using FleetWaivers = std::vector<FleetWaiver>;

/// The waivers that the fleet was given, and those under which the records that count were made, with what
/// they cover there.
FleetWaivers countWaivers(const FleetRecords& records, const FleetNodes& nodes);

/// By node, the places among `waivers` of those that can cover a verdict of it: the fleet's own, and those
/// under which it ran and that are about it. One that another node's record names is not its own.
using OwnWaivers = std::map<const FleetNode*, std::vector<size_t>>;
OwnWaivers ownWaivers(const FleetRecords& records, const FleetNodes& nodes, const FleetWaivers& waivers);

/// Counts a fleet-relative verdict of `node` for those of its waivers (`own`) that name it. The one that
/// covers it if it is a failure, or nullptr.
const Waiver* waiveDeferred(const DeferredKey& key, const FleetNode& node, const DeferredSummary& verdict,
                            Outcome outcome, const FleetRecords& records, const std::vector<size_t>& own,
                            FleetWaivers& waivers);

/// What became of each waiver, when everything is judged. One that no node of the fleet has a match for is an
/// error of the fleet (how many there are), or of the few nodes whose records alone name it.
size_t settleWaivers(const FleetRecords& records, FleetNodes& nodes, FleetWaivers& waivers);

/// Waivers of records that cover something and had expired `at` this time (seconds since 1970), though they
/// were good when their runs began; a line each. One of the fleet's file with the same text renews them.
std::vector<std::string> expiredWaivers(const FleetWaivers& waivers, double at);

}  // namespace muster::fleet
