// SPDX-License-Identifier: Apache-2.0
// The test of this plugin, one function for one case.
#pragma once

#include "kernels/interfaces/communicator.h"
#include "plugins/collective/fabric_choice.h"
#include "plugins/sdk/plugin.h"

namespace muster::collective {

/// What a case works with.
struct Bench {
  const sdk::Host& host;
  Device& device;
  Communicator& group;
  int nodes = 1;                         ///< that the group spans
  const FabricChoice* fabric = nullptr;  ///< of fabric = "auto"
  double nicLineRate = 0;                ///< B/s of each rank's NIC, where these carry the data of one node
};

Status runSweep(const Bench& bench, const Json& params, uint64_t seed);

}  // namespace muster::collective
