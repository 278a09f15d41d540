// SPDX-License-Identifier: Apache-2.0
// Layer normalisation: one warp a row. The second look at a row finds it in the cache.
#include "kernels/cuda/dnn/device/columns.cuh"

namespace muster::cuda {
namespace layer_norm_cu {

constexpr int kWarp = 32;
constexpr int kRowsOfBlock = kThreads / kWarp;

/// Calls body(i) for this lane's vectors of a row.
template <int kVector, typename Body>
__device__ inline void eachOfRow(int64_t width, Body body) {
  for (int64_t i = (threadIdx.x % kWarp) * kVector; i < width; i += kWarp * kVector) body(i);
}

/// Calls body(row) for each row of this warp. All lanes of a warp take the same path.
template <typename Body>
__device__ inline void eachRow(int64_t rows, Body body) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kRowsOfBlock + threadIdx.x / kWarp;
  for (int64_t row = first; row < rows; row += static_cast<int64_t>(gridDim.x) * kRowsOfBlock) body(row);
}

struct CombineMoments {
  __device__ Moments operator()(const Moments& a, const Moments& b) const { return combine(a, b); }
};

template <typename T, int kVector>
__global__ void __launch_bounds__(kThreads) normForward(LayerNormArrays a, T* y) {
  const T* from = static_cast<const T*>(a.x);
  eachRow(a.rows, [&](int64_t row) {
    const T* x = from + row * a.width;
    Moments moments;
    eachOfRow<kVector>(a.width, [&](int64_t i) {
      float v[kVector];
      load<kVector>(x + i, v);
#pragma unroll
      for (int j = 0; j < kVector; ++j) moments = with(moments, v[j]);
    });
    moments = acrossWarp(moments, CombineMoments{});
    const float inverse = 1.0f / sqrtf(moments.squares / static_cast<float>(a.width) + a.epsilon);
    if (threadIdx.x % kWarp == 0) {
      a.mean[row] = moments.mean;
      a.inverse[row] = inverse;
    }
    eachOfRow<kVector>(a.width, [&](int64_t i) {
      float v[kVector], scale[kVector], shift[kVector];
      load<kVector>(x + i, v);
      load<kVector>(a.scale + i, scale);
      load<kVector>(a.shift + i, shift);
#pragma unroll
      for (int j = 0; j < kVector; ++j) v[j] = (v[j] - moments.mean) * inverse * scale[j] + shift[j];
      store<kVector>(y + row * a.width + i, v);
    });
  });
}

template <typename T, int kVector>
__global__ void __launch_bounds__(kThreads)
    normInputGradient(LayerNormArrays a, const T* dy, T* dx, bool keep) {
  const T* from = static_cast<const T*>(a.x);
  eachRow(a.rows, [&](int64_t row) {
    const int64_t first = row * a.width;
    const float mean = a.mean[row];
    const float inverse = a.inverse[row];
    float sum = 0, product = 0;
    eachOfRow<kVector>(a.width, [&](int64_t i) {
      float x[kVector], g[kVector], scale[kVector];
      load<kVector>(from + first + i, x);
      load<kVector>(dy + first + i, g);
      load<kVector>(a.scale + i, scale);
#pragma unroll
      for (int j = 0; j < kVector; ++j) {
        sum += g[j] * scale[j];
        product += g[j] * scale[j] * ((x[j] - mean) * inverse);
      }
    });
    sum = acrossWarp(sum, Add{}) / static_cast<float>(a.width);
    product = acrossWarp(product, Add{}) / static_cast<float>(a.width);
    eachOfRow<kVector>(a.width, [&](int64_t i) {
      float x[kVector], g[kVector], scale[kVector], out[kVector] = {};
      load<kVector>(from + first + i, x);
      load<kVector>(dy + first + i, g);
      load<kVector>(a.scale + i, scale);
      if (keep) load<kVector>(dx + first + i, out);
#pragma unroll
      for (int j = 0; j < kVector; ++j)
        out[j] += inverse * (g[j] * scale[j] - sum - (x[j] - mean) * inverse * product);
      store<kVector>(dx + first + i, out);
    });
  });
}

/// Sums of dy times the normalised input, and of dy.
template <typename T, int kVector>
struct ScaleAndShift {
  const T* x;
  const T* dy;
  const float *mean, *inverse;
  int64_t columns;
  __device__ void begin(int64_t) const {}
  __device__ void add(int64_t row, int64_t column, float (&sums)[2][kVector]) const {
    float v[kVector], g[kVector];
    load<kVector>(x + row * columns + column, v);
    load<kVector>(dy + row * columns + column, g);
    const float m = mean[row], s = inverse[row];
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      sums[0][i] += g[i] * ((v[i] - m) * s);
      sums[1][i] += g[i];
    }
  }
};
struct WriteBoth {
  float *scale, *shift;
  __device__ void operator()(int64_t column, const float (&sums)[2]) const {
    scale[column] = sums[0];
    shift[column] = sums[1];
  }
};

unsigned gridOf(const LayerNormArrays& a) {
  return static_cast<unsigned>(blocksFor(a.rows, kRowsOfBlock));
}

}  // namespace layer_norm_cu

using namespace layer_norm_cu;

cudaError_t layerNormForward(Element element, const LayerNormArrays& a, void* y, cudaStream_t stream) {
  return withVectors(element, a.width, [&](auto type, auto width) {
    using T = decltype(type);
    normForward<T, decltype(width)::value><<<gridOf(a), kThreads, 0, stream>>>(a, static_cast<T*>(y));
    return cudaGetLastError();
  });
}

cudaError_t layerNormInputGradient(Element element, const LayerNormArrays& a, const void* dy, const Sink& dx,
                                   cudaStream_t stream) {
  return withVectors(element, a.width, [&](auto type, auto width) {
    using T = decltype(type);
    normInputGradient<T, decltype(width)::value>
        <<<gridOf(a), kThreads, 0, stream>>>(a, static_cast<const T*>(dy), static_cast<T*>(dx.data), dx.keep);
    return cudaGetLastError();
  });
}

cudaError_t layerNormParameterGradients(Element element, const Columns& c, const LayerNormArrays& a,
                                        const void* dy, float* scale, float* shift) {
  return withVectors(element, a.width, [&](auto type, auto width) {
    using T = decltype(type);
    constexpr int kVector = decltype(width)::value;
    return sumColumns<2, kVector>(
        c,
        ScaleAndShift<T, kVector>{static_cast<const T*>(a.x), static_cast<const T*>(dy), a.mean, a.inverse,
                                  a.width},
        WriteBoth{scale, shift});
  });
}

}  // namespace muster::cuda
