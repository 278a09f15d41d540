// SPDX-License-Identifier: Apache-2.0
// Links that are slow because of an end that they have in common.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "reports/fleet/fleet_record.h"

namespace muster::fleet {

/// Replaces links that fail and share one end by a finding about that end, with the links beneath: two or
/// more links to different partners. Where two ends would explain equally many links, nothing is replaced.
/// `records` gives the serials of devices.
std::vector<Suspect> foldLinks(std::vector<Suspect> suspects, const FleetRecords& records,
                               const FleetNodes& nodes);

/// The ends of failed links that the records of both ends report: of a link, or of those that a node has in
/// common. One record's word about another node is not enough for an act.
std::set<std::string> confirmedEnds(const Suspect& links);

}  // namespace muster::fleet
