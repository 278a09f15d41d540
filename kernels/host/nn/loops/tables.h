// SPDX-License-Identifier: Apache-2.0
// The loops of the instruction set that this source is being compiled for.
#pragma once

#include "kernels/host/nn/loops/loops.h"

#ifndef MUSTER_ISA
#define MUSTER_ISA base
#endif

namespace muster::host::MUSTER_ISA {

void batchNormTrain(const BatchNormData& data);
void batchNormEvaluate(const BatchNormData& data);
void batchNormBackward(const BatchNormData& data, const BatchNormGradient& gradient);
void reluForward(float* y, int64_t count);
void reluBackward(const float* y, float* dy, int64_t count);
void maxPoolForward(const PoolData& pool, const float* x, float* y, uint8_t* taken);
void maxPoolBackward(const PoolData& pool, const float* dy, const uint8_t* taken, float* dx);
void averagePoolForward(const ImageBlocks& shape, int64_t channels, const float* x, float* y);
void averagePoolBackward(const ImageBlocks& shape, int64_t channels, const float* dy, float* dx);
void addTo(float* y, const float* x, int64_t count);
void geluForward(const float* x, float* y, int64_t count);
void geluBackward(const float* x, float* dy, int64_t count);
void layerNormForward(const LayerNormData& data);
void layerNormBackward(const LayerNormData& data, const LayerNormGradient& gradient);
void crossEntropy(const CrossEntropyData& data);
void softmaxBlock(const ScoreBlock& block, float scale, float* scores, float* logSum);
void softmaxAgain(const ScoreBlock& block, float scale, float* scores, const float* logSum);
void softmaxBackward(const ScoreBlock& block, float scale, const float* p, float* dp, const float* delta);
void sgd(const SgdData& data, float* p, const float* g, float* m, int64_t count, bool first);
void adam(const AdamData& data, float* p, const float* g, float* m, float* v, int64_t count);

extern const Loops kTable;

}  // namespace muster::host::MUSTER_ISA
