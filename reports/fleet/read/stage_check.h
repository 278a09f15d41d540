// SPDX-License-Identifier: Apache-2.0
// Every record must hold every stage of its plan: what was taken out of it was not accepted.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reports/fleet/read/record_stream.h"

namespace muster::fleet {

/// The stages that records must hold, by the digest of their plan.
using PlanStages = std::map<std::string, std::vector<std::string>>;

/// Moves the records without a stage of their plan, or with another one, to the quarantined. Of a plan that
/// is not in `stages`, what most of its records hold counts.
void setAsideIncomplete(FleetRecords& records, const PlanStages& stages);

}  // namespace muster::fleet
