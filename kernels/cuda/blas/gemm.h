// SPDX-License-Identifier: Apache-2.0
// A GPU's Gemm by cuBLASLt.
#pragma once

#include <memory>
#include <string>

#include "kernels/cuda/blas/types.h"
#include "kernels/cuda/device.h"

namespace muster::cuda {

/// spec.algorithm: "default", the library's favourite, so that peers compare; or "best", the fastest of many
/// on this very GPU. `chosen` is what an earlier Gemm of this shape found to be the best, or empty; prepare()
/// fills it, so that repeats of one case measure one algorithm.
Result<std::unique_ptr<Gemm>> makeGemm(CudaDevice& device, cublasLtHandle_t handle, const GemmSpec& spec,
                                       const GemmType& type, std::string& chosen);

}  // namespace muster::cuda
