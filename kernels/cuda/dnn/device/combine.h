// SPDX-License-Identifier: Apache-2.0
// How partial results of a row become one: softmax's maximum and sum, and the moments of layer
// normalisation. Plain functions that tests run on the CPU.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cuda/host_device.h"

namespace muster::cuda {

/// The larger one, NaN if either is.
MUSTER_HD inline float maxOrNan(float a, float b) {
  return a > b || a != a ? a : b;
}

/// A part of softmax's denominator: sum of exp(x - top) over what was seen. Starts empty.
struct SoftmaxPart {
  float top = -INFINITY;
  float sum = 0;
};

/// exp(x - top) that is 0, and not NaN, where nothing was seen yet or everything is -infinity.
MUSTER_HD inline float scaleTo(float from, float top) {
  return from == -INFINITY ? 0.0f : expf(from - top);
}
MUSTER_HD inline SoftmaxPart combine(const SoftmaxPart& a, const SoftmaxPart& b) {
  const float top = maxOrNan(a.top, b.top);
  return {top, a.sum * scaleTo(a.top, top) + b.sum * scaleTo(b.top, top)};
}
MUSTER_HD inline SoftmaxPart with(const SoftmaxPart& part, float x) {
  return combine(part, {x, x == -INFINITY ? 0.0f : 1.0f});
}

/// Count, mean and sum of squared deviations of what was seen (Welford 1962). Starts empty.
struct Moments {
  float count = 0;
  float mean = 0;
  float squares = 0;
};

MUSTER_HD inline Moments with(const Moments& m, float x) {
  const float count = m.count + 1;
  const float distance = x - m.mean;
  const float mean = m.mean + distance / count;
  return {count, mean, m.squares + distance * (x - mean)};
}
/// Chan, Golub and LeVeque 1979.
MUSTER_HD inline Moments combine(const Moments& a, const Moments& b) {
  const float count = a.count + b.count;
  if (count == 0) return {};
  const float distance = b.mean - a.mean;
  const float share = b.count / count;
  return {count, a.mean + distance * share, a.squares + b.squares + distance * distance * a.count * share};
}

}  // namespace muster::cuda
