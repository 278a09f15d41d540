// SPDX-License-Identifier: Apache-2.0
// Chance without state: every draw is a pure function of its key, so a simulation repeats itself exactly.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

#include "kernels/spec/pattern.h"

namespace muster::sim {

/// Folds another value into a key.
constexpr uint64_t mix(uint64_t key, uint64_t value) {
  return scatter(key ^ scatter(value));
}
inline uint64_t mix(uint64_t key, double value) {
  return mix(key, std::bit_cast<uint64_t>(value));
}
constexpr uint64_t mix(uint64_t key, std::string_view text) {
  for (char c : text) key = mix(key, static_cast<uint64_t>(static_cast<unsigned char>(c)));
  return key;
}

/// Uniform in (0, 1).
constexpr double uniform(uint64_t key) {
  return (static_cast<double>(scatter(key) >> 11) + 0.5) * 0x1p-53;
}

/// Normal with mean 0 and sigma 1 (Box and Muller), cut at +-3 so that no healthy device is an outlier by
/// chance.
inline double normal(uint64_t key) {
  double radius = std::sqrt(-2 * std::log(uniform(key)));
  double value = radius * std::cos(2 * std::numbers::pi * uniform(mix(key, uint64_t{1})));
  return value < -3 ? -3 : value > 3 ? 3 : value;
}

}  // namespace muster::sim
