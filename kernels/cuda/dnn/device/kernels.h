// SPDX-License-Identifier: Apache-2.0
// Our kernels of training, as functions that queue them. `void*` are arrays of `element`; everything is
// contiguous. No function waits, allocates or uses float atomics: the same input gives the same bits.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/dnn/device/elements.h"
#include "kernels/cuda/dnn/device/layout.h"

namespace muster::cuda {

/// How activations are kept; tf32 is f32 in memory.
enum class Element { kF32, kBf16, kF16 };
constexpr int64_t bytesOf(Element element) {
  return element == Element::kF32 ? 4 : 2;
}

/// Where an operation leaves a gradient.
struct Sink {
  void* data = nullptr;
  bool keep = false;  ///< add to what is there
};

// ---- Element by element: elementwise.cu
/// To and from the 16 bits of bf16 or f16.
cudaError_t castToLow(Element low, const float* from, void* to, int64_t count, cudaStream_t stream);
cudaError_t castFromLow(Element low, const void* from, float* to, int64_t count, cudaStream_t stream);
/// y += x.
cudaError_t addTo(Element element, void* y, const void* x, int64_t count, cudaStream_t stream);
cudaError_t geluForward(Element element, const void* x, void* y, int64_t count, cudaStream_t stream);
/// dy becomes the gradient of x.
cudaError_t geluBackward(Element element, const void* x, void* dy, int64_t count, cudaStream_t stream);
cudaError_t reluForward(Element element, void* y, int64_t count, cudaStream_t stream);
/// dy becomes the gradient before the ReLU.
cudaError_t reluBackward(Element element, const void* y, void* dy, int64_t count, cudaStream_t stream);

// ---- Layouts: layout.cu
/// f32 NCHW -> padded NHWC.
cudaError_t imagesToNhwc(Element element, const float* from, void* to, const ImageShape& shape,
                         cudaStream_t stream);
/// Tensors one behind the other that begin `stride` elements apart: a multiple of 16 bytes.
struct HeadParts {
  int64_t count = 0, stride = 0;
};
/// [n, t, parts, heads, width] -> [parts, n, heads, t, width], and back.
cudaError_t unpackHeads(Element element, const void* from, void* to, const HeadShape& shape,
                        const HeadParts& parts, cudaStream_t stream);
cudaError_t packHeads(Element element, const void* from, void* to, const HeadShape& shape,
                      const HeadParts& parts, cudaStream_t stream);

/// A matrix whose columns are summed. `partial` is scratch of columnScratch() floats, see grids.h.
struct Columns {
  int64_t rows = 0, columns = 0;
  int64_t blocks = 264;  ///< that fill the GPU: two for each multiprocessor
  float* partial = nullptr;
  cudaStream_t stream = nullptr;
};

// ---- Biases: bias.cu
/// y = y + bias of the column, then ReLU where wanted.
cudaError_t addBias(Element element, const Columns& columns, void* y, const float* bias, bool relu);
/// gradient = sum of dy over rows.
cudaError_t biasGradient(Element element, const Columns& columns, const void* dy, float* gradient);

// ---- Batch normalisation over rows of channels: batch_norm.cu
struct BatchNormArrays {
  const float* scale = nullptr;
  const float* shift = nullptr;
  float* mean = nullptr;     ///< of the batch; arrays of the padded channels from here on
  float* inverse = nullptr;  ///< 1 / standard deviation of the batch
  float* runningMean = nullptr;
  float* runningVariance = nullptr;
  float* factors = nullptr;  ///< 4 x channels: what a pass over the data multiplies and adds
  float epsilon = 0;
  float momentum = 0;
  bool relu = false;
};
/// y = relu(x normalised by the batch's statistics + residual); updates the running ones (unbiased variance,
/// as PyTorch). `residual` may be missing.
cudaError_t batchNormTrain(Element element, const Columns& columns, const BatchNormArrays& arrays,
                           const void* x, const void* residual, void* y);
/// The same with the running statistics.
cudaError_t batchNormEvaluate(Element element, const Columns& columns, const BatchNormArrays& arrays,
                              const void* x, const void* residual, void* y);
/// With `hasResidual`, dy becomes the residual's gradient (masked by the ReLU). dx may be dy where there is
/// no residual.
struct BatchNormGradients {
  const void* x = nullptr;
  const void* y = nullptr;
  void* dy = nullptr;
  void* dx = nullptr;
  float* scale = nullptr;
  float* shift = nullptr;
  bool hasResidual = false;
};
cudaError_t batchNormBackward(Element element, const Columns& columns, const BatchNormArrays& arrays,
                              const BatchNormGradients& gradients);

// ---- Pooling of NHWC images: pool.cu
struct PoolShape {
  ImageShape in, out;  ///< the same padded channels
  int64_t kernel = 0, stride = 0, padding = 0;
};
/// `taken`: which pixel of its window won, the first of equals; NaN wins.
cudaError_t maxPoolForward(Element element, const PoolShape& pool, const void* x, void* y, uint8_t* taken,
                           cudaStream_t stream);
cudaError_t maxPoolBackward(Element element, const PoolShape& pool, const void* dy, const uint8_t* taken,
                            const Sink& dx, cudaStream_t stream);
/// [n, h, w, padded] -> [n, c].
cudaError_t averagePoolForward(Element element, const ImageShape& shape, const void* x, void* y,
                               cudaStream_t stream);
cudaError_t averagePoolBackward(Element element, const ImageShape& shape, const void* dy, const Sink& dx,
                                cudaStream_t stream);

// ---- Layer normalisation over rows: layer_norm.cu
struct LayerNormArrays {
  int64_t rows = 0, width = 0;
  const void* x = nullptr;
  const float* scale = nullptr;
  const float* shift = nullptr;
  float* mean = nullptr;     ///< per row
  float* inverse = nullptr;  ///< per row
  float epsilon = 0;
};
cudaError_t layerNormForward(Element element, const LayerNormArrays& arrays, void* y, cudaStream_t stream);
cudaError_t layerNormInputGradient(Element element, const LayerNormArrays& arrays, const void* dy,
                                   const Sink& dx, cudaStream_t stream);
cudaError_t layerNormParameterGradients(Element element, const Columns& columns,
                                        const LayerNormArrays& arrays, const void* dy, float* scale,
                                        float* shift);

// ---- Classifier: classifier.cu
struct Classifier {
  int64_t rows = 0, classes = 0;
  const void* logits = nullptr;
  const int32_t* labels = nullptr;
  void* gradient = nullptr;  ///< of the mean loss; missing in evaluation
  float* losses = nullptr;   ///< per row
  int32_t* right = nullptr;  ///< per row: 1 where the label's logit is the largest
  double* sums = nullptr;    ///< 2: sum of losses, number of right rows
};
/// Softmax, cross-entropy, its gradient and the count of right rows.
cudaError_t classify(Element element, const Classifier& data, cudaStream_t stream);

// ---- Embedding: embedding.cu
struct EmbeddingArrays {
  int64_t batch = 0, time = 0, width = 0, rows = 0;  ///< rows of the table
  const int32_t* tokens = nullptr;
  const float* table = nullptr;
  const float* positions = nullptr;  ///< may be missing
  const int32_t* order = nullptr;    ///< the places in the batch sorted by token, ties by place
  const int32_t* starts = nullptr;   ///< rows + 1 offsets into it
};
cudaError_t embeddingForward(Element element, const EmbeddingArrays& arrays, void* y, cudaStream_t stream);
cudaError_t embeddingGradient(Element element, const EmbeddingArrays& arrays, const void* dy, float* table,
                              float* positions, cudaStream_t stream);

// ---- Attention's scores: attention_softmax.cu
struct Scores {
  int64_t rows = 0;  ///< of all heads together: row r sees columns 0 ... r % columns where causal
  int64_t columns = 0;
  bool causal = true;
  float scale = 1;
};
/// Probabilities of scale x scores; what is not seen is 0.
cudaError_t attentionSoftmax(Element element, const Scores& shape, const float* scores, void* probabilities,
                             cudaStream_t stream);
/// Gradient of the scores from that of the probabilities.
cudaError_t attentionSoftmaxBackward(Element element, const Scores& shape, const void* probabilities,
                                     const float* gradient, void* scores, cudaStream_t stream);

// ---- Optimizers over the flat buffers: optimizer.cu
struct Optimized {
  int64_t count = 0;                ///< a multiple of kDecayBlock
  const uint8_t* decays = nullptr;  ///< for each kDecayBlock elements: whether weight decay applies
  float weightDecay = 0;
  const float* gradient = nullptr;
  float* parameters = nullptr;
  Element element = Element::kF32;
  void* low = nullptr;  ///< the 16-bit copy of the parameters, of type `element`; missing in f32
  float* first = nullptr;
  float* second = nullptr;  ///< AdamW only
  const StepScalars* scalars = nullptr;
};
constexpr int64_t kDecayBlock = 128;  ///< parameters begin at multiples of it
cudaError_t setScalars(StepScalars* to, const StepScalars& values, cudaStream_t stream);
cudaError_t sgdStep(const Optimized& data, cudaStream_t stream);
cudaError_t adamStep(const Optimized& data, const AdamFactors& factors, cudaStream_t stream);

}  // namespace muster::cuda
