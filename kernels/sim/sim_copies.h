// SPDX-License-Identifier: Apache-2.0
// Copies of a simulated device, at the rates of the scenario.
#pragma once

#include <memory>

#include "kernels/interfaces/copies.h"
#include "kernels/sim/sim_device.h"

namespace muster::sim {

/// kUnsupported where the scenario has no [figures.copies].
Result<std::unique_ptr<Copies>> makeCopies(SimDevice& device, int nodeRank);

}  // namespace muster::sim
