// SPDX-License-Identifier: Apache-2.0
// Arrays of f32 or bf16 as the emulated libraries read and write them.
#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "kernels/cuda/dnn/device/elements.h"

namespace muster::emulation {

inline std::vector<float> readNumbers(const void* from, bool bf16, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] =
        bf16 ? cuda::toFloat(static_cast<const cuda::Bf16*>(from)[i]) : static_cast<const float*>(from)[i];
  return values;
}
inline void writeNumber(void* to, bool bf16, int64_t at, double value) {
  const auto rounded = static_cast<float>(value);
  if (bf16)
    static_cast<cuda::Bf16*>(to)[at] = cuda::toBf16(rounded);
  else
    static_cast<float*>(to)[at] = rounded;
}
inline double readNumber(const void* from, bool bf16, int64_t at) {
  return bf16 ? cuda::toFloat(static_cast<const cuda::Bf16*>(from)[at]) : static_cast<const float*>(from)[at];
}

}  // namespace muster::emulation
