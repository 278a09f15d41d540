// SPDX-License-Identifier: Apache-2.0
// Loads, stores and sums that the kernels of training share.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/cuda/dnn/device/combine.h"
#include "kernels/cuda/dnn/device/elements.h"
#include "kernels/cuda/dnn/device/grids.h"
#include "kernels/cuda/dnn/device/kernels.h"

namespace muster::cuda {

/// N elements that are moved at once (16 bytes where the address allows it).
template <typename T, int N>
struct alignas(sizeof(T) * N) Pack {
  T v[N];
};

template <int N, typename T>
__device__ inline void load(const T* from, float (&to)[N]) {
  const Pack<T, N> pack = *reinterpret_cast<const Pack<T, N>*>(from);
#pragma unroll
  for (int i = 0; i < N; ++i) to[i] = toFloat(pack.v[i]);
}
template <int N, typename T>
__device__ inline void store(T* to, const float (&from)[N]) {
  Pack<T, N> pack;
#pragma unroll
  for (int i = 0; i < N; ++i) pack.v[i] = fromFloat<T>(from[i]);
  *reinterpret_cast<Pack<T, N>*>(to) = pack;
}

/// Calls body(i) for i = this thread's share of 0 ... count - 1.
template <typename Body>
__device__ inline void eachIndex(int64_t count, Body body) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride)
    body(i);
}

/// Combines one value of each thread of a warp by `op`, in a fixed order; every lane has the result.
template <typename T, typename Op>
__device__ inline T acrossWarp(T value, Op op) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    static_assert(sizeof(T) % 4 == 0);
    uint32_t words[sizeof(T) / 4];
    std::memcpy(words, &value, sizeof(T));
#pragma unroll
    for (uint32_t& word : words) word = __shfl_xor_sync(0xFFFFFFFFu, word, distance);
    T other;
    std::memcpy(&other, words, sizeof(T));
    // Both lanes must combine in the same order to have the same bits.
    value = (threadIdx.x & static_cast<unsigned>(distance)) == 0 ? op(value, other) : op(other, value);
  }
  return value;
}

struct Add {
  __device__ float operator()(float a, float b) const { return a + b; }
};

/// Combines one value of each thread of a one-dimensional block of whole warps; every thread has the result.
template <typename T, typename Op>
__device__ inline T acrossBlock(T value, T empty, Op op) {
  __shared__ T parts[32];
  const unsigned warp = threadIdx.x / 32;
  const unsigned lane = threadIdx.x % 32;
  value = acrossWarp(value, op);
  __syncthreads();  // an earlier call's parts were read
  if (lane == 0) parts[warp] = value;
  __syncthreads();
  value = lane < blockDim.x / 32 ? parts[lane] : empty;
  return acrossWarp(value, op);
}

/// Runs `body` with a value of the element's type: launchers choose their template by it.
template <typename Body>
cudaError_t withType(Element element, Body body) {
  if (element == Element::kF16) return body(F16{});
  return element == Element::kBf16 ? body(Bf16{}) : body(float{});
}

/// A thread that handles one element, or 16 bytes.
template <int kVector>
struct Width {
  static constexpr int value = kVector;
};
/// Runs body(type, width) with vectors where rows of `width` elements allow them.
template <typename Body>
cudaError_t withVectors(Element element, int64_t width, Body body) {
  return withType(element, [&](auto type) {
    constexpr int kBytes = sizeof(type), kVector = 16 / kBytes;
    return vectorOf(width, kBytes) == kVector ? body(type, Width<kVector>{}) : body(type, Width<1>{});
  });
}

}  // namespace muster::cuda
