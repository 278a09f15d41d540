// SPDX-License-Identifier: Apache-2.0
// What connects the nodes of a fleet, and was not measured or reported.
#pragma once

#include <string>
#include <vector>

#include "reports/fleet/fleet_record.h"

namespace muster::fleet {

struct GroupGaps {
  std::vector<std::string> reasons;  ///< why the fleet is not accepted
  std::vector<std::string> notes;    ///< what --many-runs lets pass: runs of some nodes that met others
};

/// Stages of scope cluster whose groups were smaller than the fleet, never met each other, lack the sizes
/// that the plan asks for, or have no record of their first node, which holds what all measured together.
GroupGaps findGroupGaps(const FleetRecords& records, const FleetOptions& options, const FleetNodes& nodes);

}  // namespace muster::fleet
