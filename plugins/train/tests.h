// SPDX-License-Identifier: Apache-2.0
// What this plugin offers, and its tests, one function for one case of each.
#pragma once

#include "kernels/loading/open_device.h"
#include "plugins/sdk/plugin.h"
#include "plugins/train/group.h"

namespace muster::train {

/// What a case works with.
struct Bench {
  const sdk::Host& host;
  OpenDevice& open;
  Device& device;
  Nn& nn;
  Place place;
  GroupStore& store;
};

/// The JSON of describe().
std::string describe();

Status runTraining(const Bench& bench, const Json& params, uint64_t seed);
Status runDeterminism(const Bench& bench, const Json& params, uint64_t seed);
Status runInference(const Bench& bench, const Json& params, uint64_t seed);

}  // namespace muster::train
