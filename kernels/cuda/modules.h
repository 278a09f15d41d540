// SPDX-License-Identifier: Apache-2.0
// The borders between backend_cuda.so and the modules beside it, each of which holds what needs one of
// NVIDIA's libraries: opened on first use, so that a library that is missing stops only what needs it.
#pragma once

#include <memory>

#include "kernels/communicator.h"
#include "kernels/nn.h"
#include "kernels/ops.h"

namespace muster::cuda {

/// Exported by cuda_blas.so (cuBLASLt) as `muster_cuda_blas_entry`; the build id must be equal.
struct BlasEntry {
  const char* buildId;
  Result<std::unique_ptr<Ops>> (*open)(Device& device);
};

/// Exported by cuda_dnn.so (cuDNN, cuBLASLt) as `muster_cuda_dnn_entry`.
struct DnnEntry {
  const char* buildId;
  Result<std::unique_ptr<Nn>> (*open)(Device& device);
};

/// Exported by cuda_nccl.so (NCCL) as `muster_cuda_nccl_entry`.
struct NcclEntry {
  const char* buildId;
  Result<std::unique_ptr<Communicator>> (*form)(Device& device, const CommunicatorSpec& spec,
                                                GroupStore& store);
};

}  // namespace muster::cuda
