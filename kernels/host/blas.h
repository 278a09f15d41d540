// SPDX-License-Identifier: Apache-2.0
// The border between backend_host.so and host_blas.so, which holds all that needs oneDNN and OpenBLAS.
#pragma once

#include <memory>

#include "kernels/interfaces/ops.h"

namespace muster::host {

/// Exported as `muster_host_blas_entry`; the build id must be equal.
struct BlasEntry {
  const char* buildId;
  /// Operations of an open host device that work on `threads` threads.
  Result<std::unique_ptr<Ops>> (*open)(Device& device, int threads);
};

}  // namespace muster::host
