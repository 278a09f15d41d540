// SPDX-License-Identifier: Apache-2.0
// Normally distributed numbers as a pure function of seed and index.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/device.h"

namespace muster::host {

/// Standard deviation of the integers of i8: 1 would leave nearly all of them between -2 and 2, which a
/// power-limited unit multiplies faster than real data.
inline constexpr float kI8Sigma = 32;

/// The bfloat16 nearest to `value`, ties to even. NaN stays NaN.
constexpr uint16_t toBf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
constexpr float fromBf16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

/// Whether fillNormal knows the type on this backend.
bool canFillNormal(Dtype dtype);

/// Writes elements [first, first + count) of the sequence of `seed` to `data`; `first` is even. The element
/// with index i does not depend on where a range begins. f64, f32, tf32 (stored as f32), f16, bf16, i8.
void fillNormal(void* data, Dtype dtype, uint64_t seed, uint64_t first, uint64_t count);

}  // namespace muster::host
