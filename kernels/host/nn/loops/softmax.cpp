// SPDX-License-Identifier: Apache-2.0
// Softmax: with cross-entropy and its gradient over the classes, and over blocks of attention's scores.
#include <algorithm>

#include "kernels/host/nn/loops/tables.h"
#include "kernels/host/nn/loops/vec.h"

namespace muster::host::MUSTER_ISA {
namespace {

MUSTER_INLINE Float get(const float* from, int64_t lanes, float filler) {
  return lanes == kLanes ? load(from) : loadPart(from, lanes, filler);
}

/// The largest of a row, NaN if there is one.
MUSTER_INLINE float largest(const float* x, int64_t count) {
  Float best = -INFINITY - Float{};
  for (int64_t i = 0; i < count; i += kLanes) {
    const Float v = get(x + i, std::min<int64_t>(kLanes, count - i), -INFINITY);
    best = ((v > best) | (v != v)) ? v : best;
  }
  float result = best[0];
  for (int lane = 1; lane < kLanes; ++lane)
    if (best[lane] > result || best[lane] != best[lane]) result = best[lane];
  return result;
}

/// Sum of exp(scale (x - top)); writes the exponentials where `to` is given.
MUSTER_INLINE float exponentials(const float* x, float* to, int64_t count, float top, float scale) {
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

MUSTER_INLINE void crossEntropyRow(const CrossEntropyData& d, int64_t row) {
  const int64_t classes = d.shape.width;
  const float* x = d.logits + row * classes;
  float* g = d.gradient == nullptr ? nullptr : d.gradient + row * classes;
  const float top = largest(x, classes);
  const float sum = exponentials(x, g, classes, top, 1);
  const int64_t label = d.labels[row];
  d.losses[row] =
      std::log(static_cast<double>(sum)) - (static_cast<double>(x[label]) - static_cast<double>(top));
  d.right[row] = x[label] == top ? 1 : 0;
  if (g == nullptr) return;
  const float factor = 1.0f / (sum * static_cast<float>(d.shape.rows));
  for (int64_t i = 0; i < classes; ++i) g[i] *= factor;
  g[label] -= 1.0f / static_cast<float>(d.shape.rows);
}

MUSTER_INLINE int64_t seenBy(const ScoreBlock& block, int64_t row) {
  return std::min(block.visible + row, block.columns);
}

}  // namespace

void crossEntropy(const CrossEntropyData& d) {
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < d.shape.rows; ++row) crossEntropyRow(d, row);
}

void softmaxBlock(const ScoreBlock& block, float scale, float* scores, float* logSum) {
  for (int64_t row = 0; row < block.rows; ++row) {
    float* s = scores + row * block.columns;
    const int64_t seen = seenBy(block, row);
    const float top = largest(s, seen);
    const float sum = exponentials(s, s, seen, top, scale);
    const float factor = 1.0f / sum;
    for (int64_t i = 0; i < seen; ++i) s[i] *= factor;
    std::fill(s + seen, s + block.columns, 0.0f);
    logSum[row] = top * scale + std::log(sum);
  }
}

void softmaxAgain(const ScoreBlock& block, float scale, float* scores, const float* logSum) {
  for (int64_t row = 0; row < block.rows; ++row) {
    float* s = scores + row * block.columns;
    const int64_t seen = seenBy(block, row);
    int64_t i = 0;
    for (; i + kLanes <= seen; i += kLanes) store(s + i, expOf(load(s + i) * scale - logSum[row]));
    if (i < seen) storePart(s + i, expOf(loadPart(s + i, seen - i, 0) * scale - logSum[row]), seen - i);
    std::fill(s + seen, s + block.columns, 0.0f);
  }
}

void softmaxBackward(const ScoreBlock& block, float scale, const float* p, float* dp, const float* delta) {
  for (int64_t row = 0; row < block.rows; ++row) {
    const float* from = p + row * block.columns;
    float* to = dp + row * block.columns;
    const int64_t seen = seenBy(block, row);
    const float mean = delta[row];
    for (int64_t i = 0; i < seen; ++i) to[i] = scale * from[i] * (to[i] - mean);
    std::fill(to + seen, to + block.columns, 0.0f);
  }
}

}  // namespace muster::host::MUSTER_ISA
