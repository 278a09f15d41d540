// SPDX-License-Identifier: Apache-2.0
// The border between backend_host.so and host_dnn.so, which holds training.
#pragma once

#include <memory>

#include "kernels/interfaces/nn.h"

namespace muster::host {

/// Exported as `muster_host_dnn_entry`; the build id must be equal.
struct DnnEntry {
  const char* buildId;
  /// Training on an open host device, on `threads` threads.
  Result<std::unique_ptr<Nn>> (*open)(Device& device, int threads);
};

}  // namespace muster::host
