// SPDX-License-Identifier: Apache-2.0
// The tests of this plugin, one function for one case of each.
#pragma once

#include "kernels/ops.h"
#include "plugins/sdk/group_store.h"
#include "plugins/sdk/plugin.h"

namespace muster::compute {

/// What a case works with.
struct Bench {
  const sdk::Host& host;
  Device& device;
  Ops& ops;
  sdk::Group group;        ///< ranks that begin together; of one rank: each for itself
  bool simulated = false;  ///< ranks exchange no messages
};

Status runGemm(const Bench& bench, const Json& params, uint64_t seed);
Status runSustained(const Bench& bench, const Json& params, uint64_t seed);

}  // namespace muster::compute
