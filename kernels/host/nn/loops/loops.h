// SPDX-License-Identifier: Apache-2.0
// The loops of training that oneDNN lacks or does badly. Each source of this folder is compiled once per
// instruction set, and per type that activations have in memory; loops() picks the widest set that this
// processor has. All compute in f32 and round once, when they store. All are parallel (OpenMP, fixed shares:
// the same result every time), and NaN in gives NaN out.
#pragma once

#include <cstdint>
#include <vector>

namespace muster::host {

/// What activations and their gradients are in memory: `void*` below. Everything else is as it is typed.
enum class Element { kF32, kBf16 };

/// Images as oneDNN blocks them: [image][block][pixel][lane], lanes being 8 or 16 channels; those beyond the
/// last channel are zero.
struct ImageBlocks {
  int64_t images = 0;
  int64_t blocks = 0;
  int64_t pixels = 0;
  int lanes = 16;
  [[nodiscard]] int64_t slab() const { return pixels * lanes; }
  [[nodiscard]] int64_t elements() const { return images * blocks * slab(); }
};

/// Batch normalisation of one tensor. Per-channel arrays are blocks x lanes long.
struct BatchNormData {
  ImageBlocks shape;
  const void* x = nullptr;
  const void* residual = nullptr;  ///< may be missing
  void* y = nullptr;
  const float* scale = nullptr;
  const float* shift = nullptr;
  float* mean = nullptr;     ///< of the batch
  float* inverse = nullptr;  ///< 1 / standard deviation of the batch
  float* runningMean = nullptr;
  float* runningVariance = nullptr;
  double* scratch = nullptr;  ///< 2 x images x blocks x lanes
  double epsilon = 0;
  double momentum = 0;
  bool relu = false;
};

/// Backward: gradients of y come as one or two parts that are added.
struct BatchNormGradient {
  void* dy = nullptr;  ///< with a residual, that one's gradient afterwards
  const void* more = nullptr;
  void* dx = nullptr;  ///< may be dy where there is no residual, or `more`
  float* scale = nullptr;
  float* shift = nullptr;
};

struct PoolData {
  ImageBlocks out;
  int64_t inHeight = 0, inWidth = 0, outHeight = 0, outWidth = 0;
  int64_t kernel = 0, stride = 0, padding = 0;
};

/// Rows of `width` numbers.
struct Rows {
  int64_t rows = 0;
  int64_t width = 0;
  [[nodiscard]] int64_t elements() const { return rows * width; }
};

struct LayerNormData {
  Rows shape;
  const void* x = nullptr;
  void* y = nullptr;
  const float* scale = nullptr;
  const float* shift = nullptr;
  float* mean = nullptr;     ///< per row
  float* inverse = nullptr;  ///< per row
  float epsilon = 0;
};
struct LayerNormGradient {
  const void* dy = nullptr;
  void* dx = nullptr;  ///< may be dy
  bool addToDx = false;
  float* scale = nullptr;
  float* shift = nullptr;
  float* scratch = nullptr;  ///< 2 x threads x width
};

struct SgdData {
  float learningRate = 0, momentum = 0, weightDecay = 0, gradientScale = 1;
};
struct AdamData {
  float learningRate = 0, beta1 = 0, beta2 = 0, epsilon = 0, weightDecay = 0, gradientScale = 1;
  float correction1 = 1, correction2 = 1;  ///< 1 - beta^step
};

struct CrossEntropyData {
  Rows shape;
  const void* logits = nullptr;
  const int32_t* labels = nullptr;
  void* gradient = nullptr;  ///< of the mean loss; missing in evaluation
  double* losses = nullptr;  ///< per row
  int32_t* right = nullptr;  ///< per row: 1 where the largest logit is the label's
};

/// One block of attention's rows: scores [rows, columns], of which row r sees the first `visible + r` at
/// most.
struct ScoreBlock {
  int64_t rows = 0, columns = 0;
  int64_t visible = 0;  ///< columns that row 0 sees; row r sees min(visible + r, columns)
};

/// The table of one instruction set and type.
struct Loops {
  const char* name;
  void (*batchNormTrain)(const BatchNormData& data);
  void (*batchNormEvaluate)(const BatchNormData& data);
  void (*batchNormBackward)(const BatchNormData& data, const BatchNormGradient& gradient);
  void (*reluForward)(void* y, int64_t count);
  void (*reluBackward)(const void* y, void* dy, int64_t count);
  void (*maxPoolForward)(const PoolData& pool, const void* x, void* y, uint8_t* taken);
  void (*maxPoolBackward)(const PoolData& pool, const void* dy, const uint8_t* taken, void* dx);
  void (*averagePoolForward)(const ImageBlocks& shape, int64_t channels, const void* x, void* y);
  void (*averagePoolBackward)(const ImageBlocks& shape, int64_t channels, const void* dy, void* dx);
  void (*addTo)(void* y, const void* x, int64_t count);
  void (*addRow)(float* sum, const void* x, int64_t width);  ///< on the caller's thread, as those below
  void (*embedRow)(const float* token, const float* position, void* y,
                   int64_t width);  ///< `position` may be missing
  /// Rows that are `stride` apart in memory, and side by side in f32.
  void (*rowsToF32)(const void* from, int64_t stride, float* to, const Rows& shape);
  void (*rowsFromF32)(const float* from, void* to, int64_t stride, const Rows& shape);
  void (*geluForward)(const void* x, void* y, int64_t count);
  void (*geluBackward)(const void* x, void* dy, int64_t count);  ///< dy becomes the gradient of x
  void (*layerNormForward)(const LayerNormData& data);
  void (*layerNormBackward)(const LayerNormData& data, const LayerNormGradient& gradient);
  void (*crossEntropy)(const CrossEntropyData& data);
  /// In place: scores (times `scale`) -> probabilities; `logSum` keeps each row's log of its sum of
  /// exponentials.
  void (*softmaxBlock)(const ScoreBlock& block, float scale, float* scores, float* logSum);
  /// In place: scores -> probabilities from the kept logSum.
  void (*softmaxAgain)(const ScoreBlock& block, float scale, float* scores, const float* logSum);
  /// dp [rows, columns] becomes the gradient of the scores: scale p (dp - delta of the row).
  void (*softmaxBackward)(const ScoreBlock& block, float scale, const float* p, float* dp,
                          const float* delta);
  void (*sgd)(const SgdData& data, float* p, const float* g, float* m, int64_t count, bool first);
  void (*adam)(const AdamData& data, float* p, const float* g, float* m, float* v, int64_t count);
};

/// Those that this processor can run, the widest first.
std::vector<const Loops*> usableLoops(Element element);
/// The widest.
const Loops& loops(Element element);

}  // namespace muster::host
