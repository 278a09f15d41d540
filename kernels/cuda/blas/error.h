// SPDX-License-Identifier: Apache-2.0
// What a failed call of cuBLASLt becomes: an Error with the library's own words and where it was made.
#pragma once

#include <cublasLt.h>

#include <string>

#include "runner/core/result.h"

namespace muster::cuda {

/// "cublasLtMatmul(...): an unsupported value (CUBLAS_STATUS_NOT_SUPPORTED)", at file:line.
inline Error cublasError(cublasStatus_t code, const char* expression, const char* file, int line) {
  return {code == CUBLAS_STATUS_NOT_SUPPORTED ? ErrorCode::kUnsupported : ErrorCode::kInternal,
          std::string(expression) + ": " + cublasLtGetStatusString(code) + " (" +
              cublasLtGetStatusName(code) + ")",
          std::string(file) + ":" + std::to_string(line)};
}

}  // namespace muster::cuda

/// The enclosing function returns the error of a call of cuBLASLt that failed.
#define MUSTER_CUBLAS(expression)                                                           \
  do {                                                                                      \
    const cublasStatus_t musterCode = (expression);                                         \
    if (musterCode != CUBLAS_STATUS_SUCCESS)                                                \
      return ::muster::cuda::cublasError(musterCode, #expression, __FILE_NAME__, __LINE__); \
  } while (false)
