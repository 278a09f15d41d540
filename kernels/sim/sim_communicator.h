// SPDX-License-Identifier: Apache-2.0
// A group of simulated ranks that never talk: each knows from the scenario what all of them would see.
#pragma once

#include <memory>

#include "kernels/interfaces/communicator.h"
#include "kernels/sim/sim_device.h"

namespace muster::sim {

/// Forms a group for `device`; kUnsupported where the scenario has no [network]. `key` is of the run's seed
/// and equal on all ranks; `node` is where this rank is.
Result<std::unique_ptr<Communicator>> makeCommunicator(SimDevice& device, const CommunicatorSpec& spec,
                                                       uint64_t key, int node);

}  // namespace muster::sim
