// SPDX-License-Identifier: Apache-2.0
// What a failed call of the CUDA runtime becomes: an Error with the runtime's own words and where it was
// made.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "runner/core/result.h"

namespace muster::cuda {

/// "cudaMemcpyAsync(...): an illegal memory access was encountered (cudaErrorIllegalAddress)", at file:line.
/// `file` without its folders (__FILE_NAME__): builds in two folders must be equal.
inline Error cudaError(cudaError_t code, const char* expression, const char* file, int line) {
  return {code == cudaErrorMemoryAllocation ? ErrorCode::kIo : ErrorCode::kInternal,
          std::string(expression) + ": " + cudaGetErrorString(code) + " (" + cudaGetErrorName(code) + ")",
          std::string(file) + ":" + std::to_string(line)};
}

}  // namespace muster::cuda

/// The enclosing function returns the error of a runtime call that failed.
#define MUSTER_CUDA(expression)                                                           \
  do {                                                                                    \
    const cudaError_t musterCode = (expression);                                          \
    if (musterCode != cudaSuccess)                                                        \
      return ::muster::cuda::cudaError(musterCode, #expression, __FILE_NAME__, __LINE__); \
  } while (false)
