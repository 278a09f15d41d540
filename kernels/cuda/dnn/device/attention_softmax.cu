// SPDX-License-Identifier: Apache-2.0
// The softmax of attention between two batched products, where cuDNN offers no fused attention: one block a
// row of scores.
#include "kernels/cuda/dnn/device/vectors.cuh"

namespace muster::cuda {
namespace attention_softmax_cu {

constexpr int kRowThreads = 128;

struct CombineParts {
  __device__ SoftmaxPart operator()(const SoftmaxPart& a, const SoftmaxPart& b) const {
    return combine(a, b);
  }
};

__device__ inline int64_t seenBy(const Scores& s, int64_t row) {
  return s.causal ? row % s.columns + 1 : s.columns;
}

template <typename T>
__global__ void __launch_bounds__(kRowThreads) softmaxRows(Scores s, const float* scores, T* probabilities) {
  for (int64_t row = blockIdx.x; row < s.rows; row += gridDim.x) {
    const float* x = scores + row * s.columns;
    const int64_t seen = seenBy(s, row);
    SoftmaxPart part;
    for (int64_t i = threadIdx.x; i < seen; i += kRowThreads) part = with(part, x[i] * s.scale);
    part = acrossBlock(part, SoftmaxPart{}, CombineParts{});
    const float factor = 1.0f / part.sum;
    for (int64_t i = threadIdx.x; i < s.columns; i += kRowThreads)
      probabilities[row * s.columns + i] =
          fromFloat<T>(i < seen ? expf(x[i] * s.scale - part.top) * factor : 0.0f);
  }
}

template <typename T>
__global__ void __launch_bounds__(kRowThreads)
    softmaxGradientRows(Scores s, const T* probabilities, const float* gradient, T* scores) {
  for (int64_t row = blockIdx.x; row < s.rows; row += gridDim.x) {
    const int64_t first = row * s.columns;
    const int64_t seen = seenBy(s, row);
    float mean = 0;
    for (int64_t i = threadIdx.x; i < seen; i += kRowThreads)
      mean += toFloat(probabilities[first + i]) * gradient[first + i];
    mean = acrossBlock(mean, 0.0f, Add{});
    for (int64_t i = threadIdx.x; i < s.columns; i += kRowThreads)
      scores[first + i] = fromFloat<T>(
          i < seen ? s.scale * toFloat(probabilities[first + i]) * (gradient[first + i] - mean) : 0.0f);
  }
}

}  // namespace attention_softmax_cu

using namespace attention_softmax_cu;

cudaError_t attentionSoftmax(Element element, const Scores& shape, const float* scores, void* probabilities,
                             cudaStream_t stream) {
  return withType(element, [&](auto type) {
    using T = decltype(type);
    softmaxRows<T><<<static_cast<unsigned>(blocksFor(shape.rows, 1)), kRowThreads, 0, stream>>>(
        shape, scores, static_cast<T*>(probabilities));
    return cudaGetLastError();
  });
}

cudaError_t attentionSoftmaxBackward(Element element, const Scores& shape, const void* probabilities,
                                     const float* gradient, void* scores, cudaStream_t stream) {
  return withType(element, [&](auto type) {
    using T = decltype(type);
    softmaxGradientRows<T><<<static_cast<unsigned>(blocksFor(shape.rows, 1)), kRowThreads, 0, stream>>>(
        shape, static_cast<const T*>(probabilities), gradient, static_cast<T*>(scores));
    return cudaGetLastError();
  });
}

}  // namespace muster::cuda
