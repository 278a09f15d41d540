// SPDX-License-Identifier: Apache-2.0
// The end of `muster fleet` on a terminal: verdict, coverage, suspects with what to do.
#pragma once

#include <string>

#include "reports/fleet/fleet_record.h"

namespace muster::fleet {

/// A screenful: the verdict first, then every list cut short with the count of what was left out. Control
/// characters of records never reach the terminal.
std::string renderFleetSummary(const Fleet& fleet, int width);

}  // namespace muster::fleet
