// SPDX-License-Identifier: Apache-2.0
// Softmax over blocks of attention's scores, which are f32 whatever the program's type is.
#include <algorithm>

#include "kernels/host/nn/loops/exponentials.h"
#include "kernels/host/nn/loops/tables.h"

namespace muster::host::MUSTER_ISA {
namespace {

MUSTER_INLINE int64_t seenBy(const ScoreBlock& block, int64_t row) {
  return std::min(block.visible + row, block.columns);
}

}  // namespace

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
