// SPDX-License-Identifier: Apache-2.0
// Box-Muller on a counter: no state, so any number of threads fills the same numbers.
#include "kernels/host/normal.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/pattern.h"

namespace muster::host {
namespace {

/// Two independent N(0,1) values (Box, Muller 1958) of one counter. 24 random bits each, as many as a float
/// holds.
struct FloatPair {
  float even, odd;
  explicit FloatPair(uint64_t bits) {
    const float u = (static_cast<float>(bits >> 40) + 1.0f) * 0x1p-24f;  // in (0, 1]: log(0) cannot happen
    const float angle =
        static_cast<float>((bits >> 8) & 0xffffffu) * (2 * std::numbers::pi_v<float> * 0x1p-24f);
    const float radius = std::sqrt(-2.0f * std::log(u));
    even = radius * std::cos(angle);
    odd = radius * std::sin(angle);
  }
};

/// The same in double precision: 53 random bits each, from two words.
struct DoublePair {
  double even, odd;
  explicit DoublePair(uint64_t bits) {
    const double u = (static_cast<double>(bits >> 11) + 1.0) * 0x1p-53;
    const double angle = static_cast<double>(scatter(~bits) >> 11) * (2 * std::numbers::pi * 0x1p-53);
    const double radius = std::sqrt(-2.0 * std::log(u));
    even = radius * std::cos(angle);
    odd = radius * std::sin(angle);
  }
};

int8_t toI8(float value) {
  return static_cast<int8_t>(std::clamp(std::nearbyint(value * kI8Sigma), -127.0f, 127.0f));
}

template <typename Pair, typename T, typename Convert>
void fill(T* out, uint64_t seed, uint64_t first, uint64_t count, Convert convert) {
  const uint64_t key = scatter(seed);
  for (uint64_t i = 0; i < count; i += 2) {
    const Pair pair(scatter(key ^ ((first + i) / 2)));
    out[i] = convert(pair.even);
    if (i + 1 < count) out[i + 1] = convert(pair.odd);
  }
}

}  // namespace

bool canFillNormal(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF64:
    case Dtype::kF32:
    case Dtype::kTf32:
    case Dtype::kF16:
    case Dtype::kBf16:
    case Dtype::kI8:
      return true;
    default:
      return false;
  }
}

void fillNormal(void* data, Dtype dtype, uint64_t seed, uint64_t first, uint64_t count) {
  switch (dtype) {
    case Dtype::kF64:
      return fill<DoublePair>(static_cast<double*>(data), seed, first, count, [](double x) { return x; });
    case Dtype::kF32:
    case Dtype::kTf32:
      return fill<FloatPair>(static_cast<float*>(data), seed, first, count, [](float x) { return x; });
    case Dtype::kF16:
      return fill<FloatPair>(static_cast<_Float16*>(data), seed, first, count,
                             [](float x) { return static_cast<_Float16>(x); });
    case Dtype::kBf16:
      return fill<FloatPair>(static_cast<uint16_t*>(data), seed, first, count, toBf16);
    case Dtype::kI8:
      return fill<FloatPair>(static_cast<int8_t*>(data), seed, first, count, toI8);
    default:
      return;
  }
}

}  // namespace muster::host
