// SPDX-License-Identifier: Apache-2.0
// Box-Muller on a counter: no state, so any number of threads fills the same numbers.
#include "kernels/host/normal.h"

#include <algorithm>
#include <cmath>

namespace muster::host {
namespace {

/// Two N(0,1) values of one counter.
template <typename T>
struct NormalPair {
  T even, odd;
  explicit NormalPair(const PolarPair<T>& from) {
    const T radius = std::sqrt(T(-2) * std::log(from.u));
    even = radius * std::cos(from.angle);
    odd = radius * std::sin(from.angle);
  }
};
struct FloatPair : NormalPair<float> {
  explicit FloatPair(uint64_t bits) : NormalPair(floatPair(bits)) {}
};
struct DoublePair : NormalPair<double> {
  explicit DoublePair(uint64_t bits) : NormalPair(doublePair(bits)) {}
};

int8_t toI8(float value) {
  return static_cast<int8_t>(std::clamp(std::nearbyint(value * kI8Sigma), -127.0f, 127.0f));
}

template <typename Pair, typename T, typename Convert>
void fill(T* out, uint64_t seed, uint64_t first, uint64_t count, Convert convert) {
  const uint64_t key = normalKey(seed);
  for (uint64_t i = 0; i < count; i += 2) {
    const Pair pair(normalBits(key, (first + i) / 2));
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
      return fill<FloatPair>(static_cast<Half*>(data), seed, first, count,
                             [](float x) { return static_cast<Half>(x); });
    case Dtype::kBf16:
      return fill<FloatPair>(static_cast<uint16_t*>(data), seed, first, count, toBf16);
    case Dtype::kI8:
      return fill<FloatPair>(static_cast<int8_t*>(data), seed, first, count, toI8);
    default:
      return;
  }
}

}  // namespace muster::host
