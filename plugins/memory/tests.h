// SPDX-License-Identifier: Apache-2.0
// The tests of this plugin, one function for one case of each.
#pragma once

#include "kernels/device.h"
#include "plugins/sdk/plugin.h"

namespace muster::memory {

Status runBandwidth(const sdk::Host& host, Device& device, const Json& params, uint64_t seed);
Status runPattern(const sdk::Host& host, Device& device, const Json& params, uint64_t seed);

}  // namespace muster::memory
