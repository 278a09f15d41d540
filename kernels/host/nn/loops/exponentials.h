// SPDX-License-Identifier: Apache-2.0
// The two passes over a row that every softmax makes.
#pragma once

#include <algorithm>

#include "kernels/host/nn/loops/vec.h"

namespace muster::host::MUSTER_ISA {

/// The largest of a row, NaN if there is one.
template <typename T>
MUSTER_INLINE float largest(const T* x, int64_t count) {
  Float best = -INFINITY - Float{};
  for (int64_t i = 0; i < count; i += kLanes) {
    const Float v = loadSome(x + i, std::min<int64_t>(kLanes, count - i), -INFINITY);
    best = ((v > best) | (v != v)) ? v : best;
  }
  float result = best[0];
  for (int lane = 1; lane < kLanes; ++lane)
    if (best[lane] > result || best[lane] != best[lane]) result = best[lane];
  return result;
}

/// Sum of exp(scale (x - top)); writes the exponentials where `to` is given.
template <typename T>
MUSTER_INLINE float exponentials(const T* x, T* to, int64_t count, float top, float scale) {
  Float sum = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Float e = expOf((load(x + i) - top) * scale);
    if (to != nullptr) store(to + i, e);
    sum += e;
  }
  if (i < count) {
    const Float e = expOf((loadPart(x + i, count - i, top) - top) * scale);
    if (to != nullptr) storePart(to + i, e, count - i);
    for (int64_t lane = 0; lane < count - i; ++lane) sum[lane] += e[lane];
  }
  return sumOf(sum);
}

}  // namespace muster::host::MUSTER_ISA
