// SPDX-License-Identifier: Apache-2.0
// Normally distributed numbers as a pure function of seed and index: what every backend fills with.
// Logarithm, sine and cosine are each backend's own, so values agree but for their last bits.
#pragma once

#include <cstdint>
#include <numbers>

#include "kernels/spec/pattern.h"

namespace muster {

/// Standard deviation of the integers of i8: 1 would leave nearly all of them between -2 and 2, which a
/// power-limited unit multiplies faster than real data.
inline constexpr float kI8Sigma = 32;

/// Elements 2p and 2p+1 of the sequence of `seed` come from the bits of pair p; `key` is normalKey(seed).
constexpr uint64_t normalKey(uint64_t seed) {
  return scatter(seed);
}
constexpr uint64_t normalBits(uint64_t key, uint64_t pair) {
  return scatter(key ^ pair);
}

/// What two independent N(0,1) values (Box, Muller 1958) are made of: sqrt(-2 log u) times cosine and sine of
/// the angle.
template <typename T>
struct PolarPair {
  T u;      ///< uniform in (0, 1]: log(0) cannot happen
  T angle;  ///< uniform in [0, 2 pi)
};

/// 24 random bits each, as many as a float holds.
constexpr PolarPair<float> floatPair(uint64_t bits) {
  return {(static_cast<float>(bits >> 40) + 1.0f) * 0x1p-24f,
          static_cast<float>((bits >> 8) & 0xffffffu) * (2 * std::numbers::pi_v<float> * 0x1p-24f)};
}

/// 53 random bits each, from two words.
constexpr PolarPair<double> doublePair(uint64_t bits) {
  return {(static_cast<double>(bits >> 11) + 1.0) * 0x1p-53,
          static_cast<double>(scatter(~bits) >> 11) * (2 * std::numbers::pi * 0x1p-53)};
}

}  // namespace muster
