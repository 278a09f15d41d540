// SPDX-License-Identifier: Apache-2.0
// The border between backend_host.so and host_gloo.so, which holds all that needs Gloo.
#pragma once

#include <memory>

#include "kernels/interfaces/communicator.h"

namespace muster::host {

/// Exported as `muster_host_gloo_entry`; the build id must be equal.
struct GlooEntry {
  const char* buildId;
  Result<std::unique_ptr<Communicator>> (*form)(Device& device, const CommunicatorSpec& spec,
                                                GroupStore& store);
};

}  // namespace muster::host
