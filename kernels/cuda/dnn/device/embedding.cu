// SPDX-License-Identifier: Apache-2.0
// Embedding of tokens with learned positions. The gradient of a table's row is the sum over the places that
// hold its token, in their order: the same bits every time.
#include "kernels/cuda/dnn/device/vectors.cuh"

namespace muster::cuda {
namespace embedding_cu {

template <typename T, int kVector>
__global__ void __launch_bounds__(kThreads) embed(EmbeddingArrays a, T* y) {
  const int64_t vectors = a.width / kVector;
  eachIndex(a.batch * a.time * vectors, [&](int64_t index) {
    const int64_t place = index / vectors;
    const int64_t i = index % vectors * kVector;
    float v[kVector], p[kVector] = {};
    load<kVector>(a.table + a.tokens[place] * a.width + i, v);
    if (a.positions != nullptr) load<kVector>(a.positions + place % a.time * a.width + i, p);
#pragma unroll
    for (int j = 0; j < kVector; ++j) v[j] += p[j];
    store<kVector>(y + place * a.width + i, v);
  });
}

template <typename T, int kVector>
__global__ void __launch_bounds__(kThreads) tableGradient(EmbeddingArrays a, const T* dy, float* table) {
  const int64_t vectors = a.width / kVector;
  eachIndex(a.rows * vectors, [&](int64_t index) {
    const int64_t row = index / vectors;
    const int64_t i = index % vectors * kVector;
    float sum[kVector] = {};
#pragma unroll 4
    for (int32_t at = a.starts[row]; at < a.starts[row + 1]; ++at) {
      float g[kVector];
      load<kVector>(dy + a.order[at] * a.width + i, g);
#pragma unroll
      for (int j = 0; j < kVector; ++j) sum[j] += g[j];
    }
    store<kVector>(table + row * a.width + i, sum);
  });
}

template <typename T, int kVector>
__global__ void __launch_bounds__(kThreads) sumOverBatch(EmbeddingArrays a, const T* dy, float* positions) {
  const int64_t elements = a.time * a.width;
  eachIndex(elements / kVector, [&](int64_t index) {
    float sum[kVector] = {};
#pragma unroll 4
    for (int64_t n = 0; n < a.batch; ++n) {
      float g[kVector];
      load<kVector>(dy + n * elements + index * kVector, g);
#pragma unroll
      for (int j = 0; j < kVector; ++j) sum[j] += g[j];
    }
    store<kVector>(positions + index * kVector, sum);
  });
}

unsigned gridOf(int64_t count) {
  return static_cast<unsigned>(blocksFor(count));
}

}  // namespace embedding_cu

using namespace embedding_cu;

cudaError_t embeddingForward(Element element, const EmbeddingArrays& a, void* y, cudaStream_t stream) {
  return withVectors(element, a.width, [&](auto type, auto width) {
    using T = decltype(type);
    constexpr int kVector = decltype(width)::value;
    embed<T, kVector>
        <<<gridOf(a.batch * a.time * a.width / kVector), kThreads, 0, stream>>>(a, static_cast<T*>(y));
    return cudaGetLastError();
  });
}

cudaError_t embeddingGradient(Element element, const EmbeddingArrays& a, const void* dy, float* table,
                              float* positions, cudaStream_t stream) {
  return withVectors(element, a.width, [&](auto type, auto width) {
    using T = decltype(type);
    constexpr int kVector = decltype(width)::value;
    const T* from = static_cast<const T*>(dy);
    tableGradient<T, kVector><<<gridOf(a.rows * a.width / kVector), kThreads, 0, stream>>>(a, from, table);
    if (positions != nullptr)
      sumOverBatch<T, kVector>
          <<<gridOf(a.time * a.width / kVector), kThreads, 0, stream>>>(a, from, positions);
    return cudaGetLastError();
  });
}

}  // namespace muster::cuda
