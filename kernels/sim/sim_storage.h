// SPDX-License-Identifier: Apache-2.0
// The storage of a simulated node: a pure function of scenario, seed, node rank and virtual time.
#pragma once

#include <memory>

#include "kernels/interfaces/storage.h"
#include "kernels/sim/scenario/scenario.h"

namespace muster::sim {

/// Null where the scenario has no storage.
std::unique_ptr<SimulatedStorage> makeStorage(std::shared_ptr<const Scenario> scenario, int node,
                                              uint64_t runSeed, double start);

}  // namespace muster::sim
