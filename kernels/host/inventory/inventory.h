// SPDX-License-Identifier: Apache-2.0
// Inventory and health of this machine, read from Linux: the inventory of the host backend, and of any
// backend's node.
#pragma once

#include <memory>

#include "kernels/interfaces/inventory.h"

namespace muster {

/// The inventory of the running machine. One device per NUMA node that this process may run on. Keeps the
/// counters of the last health() call, so that shares of CPU time are those since then.
std::unique_ptr<Inventory> makeHostInventory();

}  // namespace muster
