// SPDX-License-Identifier: Apache-2.0
// Pooling of NHWC images. Backward gathers: each input pixel asks the windows that cover it.
#include "kernels/cuda/dnn/device/vectors.cuh"

namespace muster::cuda {
namespace pool_cu {

/// Channels are padded to whole vectors.
template <typename T>
constexpr int kVectorOf = 16 / sizeof(T);

/// A vector of channels of one pixel, from an index over all of an image's vectors.
struct Place {
  int64_t n, h, w, c;
};
template <int kVector>
__device__ inline Place placeOf(const ImageShape& s, int64_t vector) {
  const int64_t vectors = s.padded / kVector;
  const int64_t pixel = vector / vectors;
  return {pixel / s.w / s.h, pixel / s.w % s.h, pixel % s.w, vector % vectors * kVector};
}
__device__ inline int64_t at(const ImageShape& s, int64_t n, int64_t h, int64_t w, int64_t c) {
  return ((n * s.h + h) * s.w + w) * s.padded + c;
}

template <typename T, int kVector>
__global__ void __launch_bounds__(kThreads) maxForward(PoolShape p, const T* x, T* y, uint8_t* taken) {
  eachIndex(p.out.elements() / kVector, [&](int64_t index) {
    const Place o = placeOf<kVector>(p.out, index);
    float best[kVector];
    uint8_t winner[kVector] = {};
    bool any = false;
    for (int64_t r = 0; r < p.kernel; ++r)
      for (int64_t s = 0; s < p.kernel; ++s) {
        const int64_t h = o.h * p.stride - p.padding + r;
        const int64_t w = o.w * p.stride - p.padding + s;
        if (h < 0 || h >= p.in.h || w < 0 || w >= p.in.w) continue;
        float v[kVector];
        load<kVector>(x + at(p.in, o.n, h, w, o.c), v);
#pragma unroll
        for (int i = 0; i < kVector; ++i) {
          const bool wins = !any || v[i] > best[i] || (v[i] != v[i] && best[i] == best[i]);
          best[i] = wins ? v[i] : best[i];
          winner[i] = wins ? static_cast<uint8_t>(r * p.kernel + s) : winner[i];
        }
        any = true;
      }
    store<kVector>(y + index * kVector, best);
    Pack<uint8_t, kVector> pack;
#pragma unroll
    for (int i = 0; i < kVector; ++i) pack.v[i] = winner[i];
    *reinterpret_cast<Pack<uint8_t, kVector>*>(taken + index * kVector) = pack;
  });
}

template <typename T, int kVector>
__global__ void __launch_bounds__(kThreads)
    maxBackward(PoolShape p, const T* dy, const uint8_t* taken, T* dx, bool keep) {
  eachIndex(p.in.elements() / kVector, [&](int64_t index) {
    const Place in = placeOf<kVector>(p.in, index);
    float sum[kVector] = {};
    if (keep) load<kVector>(dx + index * kVector, sum);
    for (int64_t r = 0; r < p.kernel; ++r)
      for (int64_t s = 0; s < p.kernel; ++s) {
        const int64_t h = in.h + p.padding - r;
        const int64_t w = in.w + p.padding - s;
        if (h < 0 || w < 0 || h % p.stride != 0 || w % p.stride != 0) continue;
        if (h / p.stride >= p.out.h || w / p.stride >= p.out.w) continue;
        const int64_t from = at(p.out, in.n, h / p.stride, w / p.stride, in.c);
        float g[kVector];
        load<kVector>(dy + from, g);
        const Pack<uint8_t, kVector> winner = *reinterpret_cast<const Pack<uint8_t, kVector>*>(taken + from);
#pragma unroll
        for (int i = 0; i < kVector; ++i)
          if (winner.v[i] == static_cast<uint8_t>(r * p.kernel + s)) sum[i] += g[i];
      }
    store<kVector>(dx + index * kVector, sum);
  });
}

/// A thread sums one channel over the pixels; neighbours have neighbouring channels.
template <typename T>
__global__ void __launch_bounds__(kThreads) averageForward(ImageShape s, const T* x, T* y) {
  const int64_t pixels = s.h * s.w;
  eachIndex(s.n * s.c, [&](int64_t index) {
    const int64_t n = index / s.c;
    const int64_t c = index % s.c;
    float sum = 0;
#pragma unroll 4
    for (int64_t pixel = 0; pixel < pixels; ++pixel) sum += toFloat(x[(n * pixels + pixel) * s.padded + c]);
    y[index] = fromFloat<T>(sum / static_cast<float>(pixels));
  });
}

template <typename T>
__global__ void __launch_bounds__(kThreads) averageBackward(ImageShape s, const T* dy, T* dx, bool keep) {
  const int64_t pixels = s.h * s.w;
  eachIndex(s.elements(), [&](int64_t index) {
    const int64_t c = index % s.padded;
    const int64_t n = index / s.padded / pixels;
    const float g = c < s.c ? toFloat(dy[n * s.c + c]) / static_cast<float>(pixels) : 0.0f;
    dx[index] = fromFloat<T>(keep ? toFloat(dx[index]) + g : g);
  });
}

unsigned gridOf(int64_t count) {
  return static_cast<unsigned>(blocksFor(count));
}

}  // namespace pool_cu

using namespace pool_cu;

cudaError_t maxPoolForward(Element element, const PoolShape& pool, const void* x, void* y, uint8_t* taken,
                           cudaStream_t stream) {
  return withType(element, [&](auto type) {
    using T = decltype(type);
    constexpr int kVector = kVectorOf<T>;
    maxForward<T, kVector><<<gridOf(pool.out.elements() / kVector), kThreads, 0, stream>>>(
        pool, static_cast<const T*>(x), static_cast<T*>(y), taken);
    return cudaGetLastError();
  });
}

cudaError_t maxPoolBackward(Element element, const PoolShape& pool, const void* dy, const uint8_t* taken,
                            const Sink& dx, cudaStream_t stream) {
  return withType(element, [&](auto type) {
    using T = decltype(type);
    constexpr int kVector = kVectorOf<T>;
    maxBackward<T, kVector><<<gridOf(pool.in.elements() / kVector), kThreads, 0, stream>>>(
        pool, static_cast<const T*>(dy), taken, static_cast<T*>(dx.data), dx.keep);
    return cudaGetLastError();
  });
}

cudaError_t averagePoolForward(Element element, const ImageShape& shape, const void* x, void* y,
                               cudaStream_t stream) {
  return withType(element, [&](auto type) {
    using T = decltype(type);
    averageForward<T><<<gridOf(shape.n * shape.c), kThreads, 0, stream>>>(shape, static_cast<const T*>(x),
                                                                          static_cast<T*>(y));
    return cudaGetLastError();
  });
}

cudaError_t averagePoolBackward(Element element, const ImageShape& shape, const void* dy, const Sink& dx,
                                cudaStream_t stream) {
  return withType(element, [&](auto type) {
    using T = decltype(type);
    averageBackward<T><<<gridOf(shape.elements()), kThreads, 0, stream>>>(shape, static_cast<const T*>(dy),
                                                                          static_cast<T*>(dx.data), dx.keep);
    return cudaGetLastError();
  });
}

}  // namespace muster::cuda
