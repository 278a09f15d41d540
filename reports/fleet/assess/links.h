// SPDX-License-Identifier: Apache-2.0
// Links that are slow because of an end that they have in common.
#pragma once

#include "reports/fleet/fleet_record.h"

namespace muster::fleet {

/// Replaces links that fail and share one end by a finding about that end, with the links beneath: two or
/// more links to different partners. Where two ends would explain equally many links, nothing is replaced.
/// `records` gives the serials of devices.
std::vector<Suspect> foldLinks(std::vector<Suspect> suspects, const FleetRecords& records,
                               const FleetNodes& nodes);

}  // namespace muster::fleet
