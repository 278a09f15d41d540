// SPDX-License-Identifier: Apache-2.0
// The tests of this plugin, one function for one case of each, and what they run on.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/interfaces/backend.h"
#include "kernels/interfaces/device.h"
#include "plugins/sdk/group_store.h"
#include "plugins/sdk/plugin.h"

namespace muster::memory {

/// What a rank measures with.
struct Bench {
  const sdk::Host& host;
  Backend& backend;
  Device& device;
  sdk::Group group;
  std::vector<std::string> devices;  ///< ids of all of the node
  bool virtualTime = false;          ///< ranks are functions of the scenario and do not wait for each other
};

Status runBandwidth(const Bench& bench, const Json& params, uint64_t seed);
Status runPattern(const Bench& bench, const Json& params, uint64_t seed);
Status runLatency(const Bench& bench, const Json& params, uint64_t seed);
Status runHostCopy(const Bench& bench, const Json& params, uint64_t seed);
Status runPeer(const Bench& bench, const Json& params, uint64_t seed);

/// Runs `work` while the other ranks of the group stand still, rank after rank: what shares links is measured
/// alone. A rank whose work fails lets the others have their turns. Waits `timeout` seconds for each turn at
/// most.
Status inTurn(const Bench& bench, double timeout, const std::function<Status()>& work);

}  // namespace muster::memory
