// SPDX-License-Identifier: Apache-2.0
// The loops of the instruction set and the type in memory that this source is being compiled for.
#pragma once

#include "kernels/host/nn/loops/loops.h"
#include "kernels/host/nn/loops/vec.h"

#ifndef MUSTER_STORED
#define MUSTER_STORED f32
#endif

namespace muster::host::MUSTER_ISA {

/// What activations and their gradients are in memory. Arithmetic is f32 always.
namespace f32 {
using Stored = float;
}
namespace bf16 {
using Stored = Bf16;
}

// These work on f32 only: compiled once for both.
void softmaxBlock(const ScoreBlock& block, float scale, float* scores, float* logSum);
void softmaxAgain(const ScoreBlock& block, float scale, float* scores, const float* logSum);
void softmaxBackward(const ScoreBlock& block, float scale, const float* p, float* dp, const float* delta);
void sgd(const SgdData& data, float* p, const float* g, float* m, int64_t count, bool first);
void adam(const AdamData& data, float* p, const float* g, float* m, float* v, int64_t count);

namespace MUSTER_STORED {

inline Stored* stored(void* data) {
  return static_cast<Stored*>(data);
}
inline const Stored* stored(const void* data) {
  return static_cast<const Stored*>(data);
}

void batchNormTrain(const BatchNormData& data);
void batchNormEvaluate(const BatchNormData& data);
void batchNormBackward(const BatchNormData& data, const BatchNormGradient& gradient);
void reluForward(void* values, int64_t count);
void reluBackward(const void* values, void* gradient, int64_t count);
void maxPoolForward(const PoolData& pool, const void* x, void* y, uint8_t* taken);
void maxPoolBackward(const PoolData& pool, const void* dy, const uint8_t* taken, void* dx);
void averagePoolForward(const ImageBlocks& shape, int64_t channels, const void* x, void* y);
void averagePoolBackward(const ImageBlocks& shape, int64_t channels, const void* dy, void* dx);
void addTo(void* sum, const void* more, int64_t count);
void addRow(float* sum, const void* more, int64_t width);
void embedRow(const float* token, const float* position, void* to, int64_t width);
void rowsToF32(const void* from, int64_t stride, float* to, const Rows& shape);
void rowsFromF32(const float* from, void* to, int64_t stride, const Rows& shape);
void geluForward(const void* from, void* to, int64_t count);
void geluBackward(const void* from, void* gradient, int64_t count);
void layerNormForward(const LayerNormData& data);
void layerNormBackward(const LayerNormData& data, const LayerNormGradient& gradient);
void crossEntropy(const CrossEntropyData& data);
extern const Loops kTable;

}  // namespace MUSTER_STORED
}  // namespace muster::host::MUSTER_ISA
