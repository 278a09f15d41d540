// SPDX-License-Identifier: Apache-2.0
// All that is wrong with a fleet as one list, with what shares a cause put together.
#pragma once

#include "reports/fleet/fleet_record.h"

namespace muster::fleet {

/// The incidents of a judged fleet, the most urgent first. Each flagged component, each inconsistency of
/// records, each node that is not accepted and each waiver that matches nothing is in one of them.
std::vector<Incident> findIncidents(const Fleet& fleet);

}  // namespace muster::fleet
