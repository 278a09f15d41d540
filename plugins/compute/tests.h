// SPDX-License-Identifier: Apache-2.0
// The tests of this plugin, one function for one case of each.
#pragma once

#include "kernels/interfaces/ops.h"
#include "plugins/sdk/plugin.h"

namespace muster::compute {

/// What a case works with.
struct Bench {
  const sdk::Host& host;
  Device& device;
  Ops& ops;
  bool together = false;     ///< all ranks of the group begin at once
  bool virtualTime = false;  ///< ranks exchange no messages
};

Status runGemm(const Bench& bench, const Json& params, uint64_t seed);
Status runBest(const Bench& bench, const Json& params, uint64_t seed);
Status runSustained(const Bench& bench, const Json& params, uint64_t seed);

}  // namespace muster::compute
