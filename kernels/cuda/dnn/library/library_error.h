// SPDX-License-Identifier: Apache-2.0
// What a failed call of cuDNN or cuBLASLt becomes, and a failed kernel launch: an Error in the library's own
// words.
#pragma once

#include <cublasLt.h>
#include <cudnn.h>

#include <string>

#include "kernels/cuda/error.h"

namespace muster::cuda {

/// cuDNN keeps a sentence about the last failure of this thread beside its code.
inline Error cudnnError(cudnnStatus_t code, const char* expression, const char* file, int line) {
  char detail[512] = "";
  cudnnGetLastErrorString(detail, sizeof(detail));
  const bool missing = code / 1000 == CUDNN_STATUS_NOT_SUPPORTED / 1000;
  std::string text = std::string(expression) + ": " + cudnnGetErrorString(code);
  if (detail[0] != '\0') text += std::string(" (") + detail + ")";
  return {missing ? ErrorCode::kUnsupported : ErrorCode::kInternal, text,
          std::string(file) + ":" + std::to_string(line)};
}

inline Error cublasError(cublasStatus_t code, const char* expression, const char* file, int line) {
  return {code == CUBLAS_STATUS_NOT_SUPPORTED ? ErrorCode::kUnsupported : ErrorCode::kInternal,
          std::string(expression) + ": " + cublasLtGetStatusString(code) + " (" +
              cublasLtGetStatusName(code) + ")",
          std::string(file) + ":" + std::to_string(line)};
}

}  // namespace muster::cuda

/// The enclosing function returns the error of a call of cuDNN that failed.
#define MUSTER_CUDNN(expression)                                                           \
  do {                                                                                     \
    const cudnnStatus_t musterCode = (expression);                                         \
    if (musterCode != CUDNN_STATUS_SUCCESS)                                                \
      return ::muster::cuda::cudnnError(musterCode, #expression, __FILE_NAME__, __LINE__); \
  } while (false)

/// The same for cuBLASLt.
#define MUSTER_CUBLAS(expression)                                                           \
  do {                                                                                      \
    const cublasStatus_t musterCode = (expression);                                         \
    if (musterCode != CUBLAS_STATUS_SUCCESS)                                                \
      return ::muster::cuda::cublasError(musterCode, #expression, __FILE_NAME__, __LINE__); \
  } while (false)
