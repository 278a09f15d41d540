// SPDX-License-Identifier: Apache-2.0
// Embedding of tokens with learned positions. The gradient of a table's row is the sum over the places that
// hold its token, in their order: the same bits every time.
#include "kernels/cuda/dnn/device/vectors.cuh"

namespace muster::cuda {
namespace {

template <typename T, int kVector>
__global__ void __launch_bounds__(kThreads)
    embed(EmbeddingShape s, const int32_t* tokens, const float* table, const float* positions, T* y) {
  const int64_t vectors = s.width / kVector;
  eachIndex(s.batch * s.time * vectors, [&](int64_t index) {
    const int64_t place = index / vectors;
    const int64_t i = index % vectors * kVector;
    float v[kVector], p[kVector] = {};
    load<kVector>(table + tokens[place] * s.width + i, v);
    if (positions != nullptr) load<kVector>(positions + place % s.time * s.width + i, p);
#pragma unroll
    for (int j = 0; j < kVector; ++j) v[j] += p[j];
    store<kVector>(y + place * s.width + i, v);
  });
}

template <typename T, int kVector>
__global__ void __launch_bounds__(kThreads)
    tableGradient(EmbeddingShape s, const int32_t* order, const int32_t* starts, const T* dy, float* table) {
  const int64_t vectors = s.width / kVector;
  eachIndex(s.rows * vectors, [&](int64_t index) {
    const int64_t row = index / vectors;
    const int64_t i = index % vectors * kVector;
    float sum[kVector] = {};
#pragma unroll 4
    for (int32_t at = starts[row]; at < starts[row + 1]; ++at) {
      float g[kVector];
      load<kVector>(dy + order[at] * s.width + i, g);
#pragma unroll
      for (int j = 0; j < kVector; ++j) sum[j] += g[j];
    }
    store<kVector>(table + row * s.width + i, sum);
  });
}

template <typename T, int kVector>
__global__ void __launch_bounds__(kThreads) sumOverBatch(EmbeddingShape s, const T* dy, float* positions) {
  const int64_t elements = s.time * s.width;
  eachIndex(elements / kVector, [&](int64_t index) {
    float sum[kVector] = {};
#pragma unroll 4
    for (int64_t n = 0; n < s.batch; ++n) {
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

}  // namespace

cudaError_t embeddingForward(Element element, const EmbeddingShape& shape, const int32_t* tokens,
                             const float* table, const float* positions, void* y, cudaStream_t stream) {
  return withVectors(element, shape.width, [&](auto type, auto width) {
    using T = decltype(type);
    constexpr int kVector = decltype(width)::value;
    embed<T, kVector><<<gridOf(shape.batch * shape.time * shape.width / kVector), kThreads, 0, stream>>>(
        shape, tokens, table, positions, static_cast<T*>(y));
    return cudaGetLastError();
  });
}

cudaError_t embeddingGradient(Element element, const EmbeddingShape& shape, const int32_t* order,
                              const int32_t* starts, const void* dy, float* table, cudaStream_t stream) {
  return withVectors(element, shape.width, [&](auto type, auto width) {
    using T = decltype(type);
    constexpr int kVector = decltype(width)::value;
    tableGradient<T, kVector><<<gridOf(shape.rows * shape.width / kVector), kThreads, 0, stream>>>(
        shape, order, starts, static_cast<const T*>(dy), table);
    return cudaGetLastError();
  });
}

cudaError_t positionsGradient(Element element, const EmbeddingShape& shape, const void* dy, float* positions,
                              cudaStream_t stream) {
  return withVectors(element, shape.width, [&](auto type, auto width) {
    using T = decltype(type);
    constexpr int kVector = decltype(width)::value;
    sumOverBatch<T, kVector><<<gridOf(shape.time * shape.width / kVector), kThreads, 0, stream>>>(
        shape, static_cast<const T*>(dy), positions);
    return cudaGetLastError();
  });
}

}  // namespace muster::cuda
