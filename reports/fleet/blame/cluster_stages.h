// SPDX-License-Identifier: Apache-2.0
// Which stages run over several nodes (most records say so, and not one alone), and what they left
// unmeasured.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "reports/fleet/fleet_record.h"

namespace muster::fleet {

/// The stages, by their numbers in FleetNames::texts, that at least half of the nodes with a record hold with
/// scope cluster. What another record says of others in a stage of its own counts for its own node only.
std::set<uint32_t> clusterStages(const FleetRecords& records, const FleetNodes& nodes);

struct GroupGaps {
  std::vector<std::string> reasons;  ///< why the fleet is not accepted
  std::vector<std::string> notes;    ///< what --many-runs lets pass: everything but a node that met no other
};

/// Stages of scope cluster whose groups were smaller than the fleet, never met each other, lack the sizes
/// that the plan asks for, or have no record of their first node, which holds what all measured together.
GroupGaps findGroupGaps(const FleetRecords& records, const FleetOptions& options, const FleetNodes& nodes);

}  // namespace muster::fleet
