// SPDX-License-Identifier: Apache-2.0
// Copies of a simulated device, at the rates of the scenario.
#pragma once

#include <memory>
#include <string>

#include "kernels/interfaces/copies.h"
#include "kernels/sim/sim_device.h"

namespace muster::sim {

/// The host's NUMA node of the device at this place.
int numaNodeOf(const Scenario& scenario, int place);
/// What carries copies between the devices at two places of a node: Inventory::link().
std::string peerLink(const Scenario& scenario, int a, int b);

/// kUnsupported where the scenario has no [figures.copies].
Result<std::unique_ptr<Copies>> makeCopies(SimDevice& device, int nodeRank);

}  // namespace muster::sim
