// SPDX-License-Identifier: Apache-2.0
// A prepared collective of the host: buffers, exact inputs, and the search for the rank that is wrong.
#pragma once

#include <memory>

#include "kernels/checks/collective_values.h"
#include "kernels/host/gloo/algorithms.h"
#include "kernels/host/gloo/stream.h"

namespace muster::host {

/// Buffers come from `device`. `group` and `stream` must outlive it.
Result<std::unique_ptr<Collective>> makeCollective(Device& device, GlooGroup& group, Stream& stream,
                                                   const CollectiveSpec& spec);

}  // namespace muster::host
