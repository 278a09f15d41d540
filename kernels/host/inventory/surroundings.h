// SPDX-License-Identifier: Apache-2.0
// Readings of what surrounds the work on a node: processors, memory, limits, control groups, clock, space,
// network.
#pragma once

#include <string>

#include "kernels/host/inventory/root.h"
#include "kernels/interfaces/inventory.h"

namespace muster {

/// Every reading that holds for a whole run. `folder` is where results are written. What this machine lacks
/// gives no reading; what is there and cannot be read is among the unreadable.
Readings readSurroundings(const Root& root, const std::string& folder);

}  // namespace muster
