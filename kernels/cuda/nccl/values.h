// SPDX-License-Identifier: Apache-2.0
// Launches of the kernels that fill and check a collective's buffers.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/checks/collective_values.h"

namespace muster::cuda {

/// What a check found: written by the device; `first` and `last` are the lowest and highest wrong element.
struct WrongElements {
  unsigned long long count;
  unsigned long long first;
  unsigned long long last;
};

/// Queues the fill of the first `count` elements with what `rank` puts in. cudaErrorInvalidValue for a type
/// that collectives have not.
cudaError_t launchInputs(void* to, Dtype dtype, const ExactValues& values, int rank, uint64_t count,
                         cudaStream_t stream);
/// Queues the check of all that `rank` received. `found`, on the device, must hold {0, ~0, 0}.
cudaError_t launchCheck(const void* received, const CollectiveSpec& spec, const ExactValues& values, int rank,
                        WrongElements* found, cudaStream_t stream);

}  // namespace muster::cuda
