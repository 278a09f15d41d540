// SPDX-License-Identifier: Apache-2.0
// Element by element: casts, sums, ReLU, GELU.
#include <type_traits>

#include "kernels/cuda/dnn/device/vectors.cuh"

namespace muster::cuda {
namespace elementwise_cu {

/// Vectors of 16 bytes for all but the last few elements, which are done one by one.
template <typename From, typename To, int kVector, typename Body>
__global__ void __launch_bounds__(kThreads) mapElements(const From* from, To* to, int64_t count, Body body) {
  const int64_t vectors = count / kVector;
  eachIndex(vectors, [&](int64_t i) {
    float x[kVector], y[kVector] = {};
    load<kVector>(from + i * kVector, x);
    if constexpr (Body::kReadsTarget) load<kVector>(to + i * kVector, y);
#pragma unroll
    for (int j = 0; j < kVector; ++j) y[j] = body(x[j], y[j]);
    store<kVector>(to + i * kVector, y);
  });
  eachIndex(count - vectors * kVector, [&](int64_t i) {
    const int64_t at = vectors * kVector + i;
    to[at] = fromFloat<To>(body(toFloat(from[at]), Body::kReadsTarget ? toFloat(to[at]) : 0.0f));
  });
}

template <typename From, typename To, typename Body>
cudaError_t map(const void* from, void* to, int64_t count, Body body, cudaStream_t stream) {
  constexpr int kVector = std::is_same_v<From, To> ? 16 / sizeof(To) : 8;
  if (count == 0) return cudaSuccess;
  mapElements<From, To, kVector><<<static_cast<unsigned>(blocksFor(count / kVector)), kThreads, 0, stream>>>(
      static_cast<const From*>(from), static_cast<To*>(to), count, body);
  return cudaGetLastError();
}

struct Copy {
  static constexpr bool kReadsTarget = false;
  __device__ float operator()(float x, float) const { return x; }
};
struct Sum {
  static constexpr bool kReadsTarget = true;
  __device__ float operator()(float x, float y) const { return x + y; }
};
struct Gelu {
  static constexpr bool kReadsTarget = false;
  __device__ float operator()(float x, float) const { return geluOf(x); }
};
struct GeluBack {
  static constexpr bool kReadsTarget = true;
  __device__ float operator()(float x, float dy) const { return dy * geluSlope(x); }
};
struct Relu {
  static constexpr bool kReadsTarget = false;
  __device__ float operator()(float x, float) const { return reluOf(x); }
};
struct ReluBack {
  static constexpr bool kReadsTarget = true;
  __device__ float operator()(float y, float dy) const { return reluGradient(y, dy); }
};

template <typename Body>
cudaError_t mapSame(Element element, const void* from, void* to, int64_t count, Body body,
                    cudaStream_t stream) {
  return withType(element, [&](auto type) {
    using T = decltype(type);
    return map<T, T>(from, to, count, body, stream);
  });
}

}  // namespace elementwise_cu

using namespace elementwise_cu;

cudaError_t castToLow(Element low, const float* from, void* to, int64_t count, cudaStream_t stream) {
  return low == Element::kF16 ? map<float, F16>(from, to, count, Copy{}, stream)
                              : map<float, Bf16>(from, to, count, Copy{}, stream);
}
cudaError_t castFromLow(Element low, const void* from, float* to, int64_t count, cudaStream_t stream) {
  return low == Element::kF16 ? map<F16, float>(from, to, count, Copy{}, stream)
                              : map<Bf16, float>(from, to, count, Copy{}, stream);
}
cudaError_t addTo(Element element, void* y, const void* x, int64_t count, cudaStream_t stream) {
  return mapSame(element, x, y, count, Sum{}, stream);
}
cudaError_t geluForward(Element element, const void* x, void* y, int64_t count, cudaStream_t stream) {
  return mapSame(element, x, y, count, Gelu{}, stream);
}
cudaError_t geluBackward(Element element, const void* x, void* dy, int64_t count, cudaStream_t stream) {
  return mapSame(element, x, dy, count, GeluBack{}, stream);
}
cudaError_t reluForward(Element element, void* y, int64_t count, cudaStream_t stream) {
  return mapSame(element, y, y, count, Relu{}, stream);
}
cudaError_t reluBackward(Element element, const void* y, void* dy, int64_t count, cudaStream_t stream) {
  return mapSame(element, y, dy, count, ReluBack{}, stream);
}

}  // namespace muster::cuda
