// SPDX-License-Identifier: Apache-2.0
// Which stages run over several nodes: most records say so, and not one alone.
#pragma once

#include <cstdint>
#include <set>

#include "reports/fleet/fleet_record.h"

namespace muster::fleet {

/// The stages, by their numbers in FleetNames::texts, that most of the nodes with a record hold with scope
/// cluster. What another record says of others in a stage of its own counts for its own node only.
std::set<uint32_t> clusterStages(const FleetRecords& records, const FleetNodes& nodes);

}  // namespace muster::fleet
