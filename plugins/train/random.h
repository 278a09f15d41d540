// SPDX-License-Identifier: Apache-2.0
// Random numbers as pure functions of a key: the same on every machine, in any order, from any thread.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "kernels/spec/pattern.h"

namespace muster::train {

/// Folds another value into a key.
constexpr uint64_t mixKeys(uint64_t key, uint64_t value) {
  return scatter(key ^ scatter(value));
}

/// Uniform in (0, 1).
constexpr double uniform(uint64_t key) {
  return (static_cast<double>(scatter(key) >> 11) + 0.5) * 0x1p-53;
}

/// Uniform among 0 ... bound - 1.
constexpr uint64_t below(uint64_t key, uint64_t bound) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(scatter(key)) * bound) >> 64);
}

/// Normal with mean 0 and sigma 1 (Box and Muller 1958).
inline double normal(uint64_t key) {
  const double radius = std::sqrt(-2 * std::log(uniform(key)));
  return radius * std::cos(2 * std::numbers::pi * uniform(mixKeys(key, 1)));
}

}  // namespace muster::train
