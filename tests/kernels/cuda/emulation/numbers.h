// SPDX-License-Identifier: Apache-2.0
// Arrays of f32, bf16 or f16 as the emulated libraries read and write them.
#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "kernels/cuda/dnn/device/kernels.h"

namespace muster::emulation {

using cuda::Element;

inline float readNumber(const void* from, Element element, int64_t at) {
  if (element == Element::kF32) return static_cast<const float*>(from)[at];
  return element == Element::kF16 ? cuda::toFloat(static_cast<const cuda::F16*>(from)[at])
                                  : cuda::toFloat(static_cast<const cuda::Bf16*>(from)[at]);
}
inline std::vector<float> readNumbers(const void* from, Element element, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = readNumber(from, element, static_cast<int64_t>(i));
  return values;
}
inline void writeNumber(void* to, Element element, int64_t at, double value) {
  const auto rounded = static_cast<float>(value);
  if (element == Element::kF32)
    static_cast<float*>(to)[at] = rounded;
  else if (element == Element::kF16)
    static_cast<cuda::F16*>(to)[at] = cuda::toF16(rounded);
  else
    static_cast<cuda::Bf16*>(to)[at] = cuda::toBf16(rounded);
}

}  // namespace muster::emulation
