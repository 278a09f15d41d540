// SPDX-License-Identifier: Apache-2.0
// Whether a node is still the one whose inventory was taken: what a resumed run compares.
#pragma once

#include <string>
#include <vector>

#include "runner/core/json.h"

namespace muster {

/// What differs between the facts of two inventories: host, devices, RDMA devices, and the settings of
/// devices that change what they measure; "gpu3 ecc: was on, is off". Left out is what changes by itself
/// (clocks, counters, states of links), and of the host what only one of them could read.
std::vector<std::string> inventoryChanges(const Json& before, const Json& now);

}  // namespace muster
