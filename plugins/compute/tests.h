// SPDX-License-Identifier: Apache-2.0
// The tests of this plugin, one function for one case of each.
#pragma once

#include "kernels/ops.h"
#include "plugins/sdk/plugin.h"

namespace muster::compute {

/// What a case works with.
struct Bench {
  const sdk::Host& host;
  Device& device;
  Ops& ops;
};

Status runGemm(const Bench& bench, const Json& params, uint64_t seed);
Status runSustained(const Bench& bench, const Json& params, uint64_t seed);

}  // namespace muster::compute
