// SPDX-License-Identifier: Apache-2.0
// The last step of an assessment: what the states of nodes come to.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reports/fleet/fleet_record.h"

namespace muster::fleet {

/// Counts states, decides, and adds what the counts say to the reasons; those that are there already are of
/// the fleet as a whole and block acceptance. kInternal when the accounting does not balance.
Status decide(Fleet& fleet);

/// Decides a fleet once more that assess() made: the accepted nodes of `open` are incomplete for the reasons
/// given there, and `lines` are further reasons of the whole fleet.
Status withhold(const std::map<std::string, std::string>& open, const std::vector<std::string>& lines,
                Fleet& fleet);

}  // namespace muster::fleet
