// SPDX-License-Identifier: Apache-2.0
// Biases where a library's product cannot take them along.
#include "kernels/cuda/dnn/device/columns.cuh"

namespace muster::cuda {
namespace bias_cu {

template <typename T, int kVector>
struct AddBias {
  T* y;
  const float* from;
  int64_t columns;
  bool relu;
  float bias[kVector];
  __device__ void begin(int64_t column) {
#pragma unroll
    for (int i = 0; i < kVector; ++i) bias[i] = from[column + i];
  }
  __device__ void apply(int64_t row, int64_t column) const {
    float v[kVector];
    load<kVector>(y + row * columns + column, v);
#pragma unroll
    for (int i = 0; i < kVector; ++i) v[i] = relu ? reluOf(v[i] + bias[i]) : v[i] + bias[i];
    store<kVector>(y + row * columns + column, v);
  }
};

template <typename T, int kVector>
struct SumRows {
  const T* dy;
  int64_t columns;
  __device__ void begin(int64_t) const {}
  __device__ void add(int64_t row, int64_t column, float (&sums)[1][kVector]) const {
    float v[kVector];
    load<kVector>(dy + row * columns + column, v);
#pragma unroll
    for (int i = 0; i < kVector; ++i) sums[0][i] += v[i];
  }
};
struct WriteSum {
  float* to;
  __device__ void operator()(int64_t column, const float (&sums)[1]) const { to[column] = sums[0]; }
};

}  // namespace bias_cu

using namespace bias_cu;

cudaError_t addBias(Element element, const Columns& c, void* y, const float* bias, bool relu) {
  return withVectors(element, c.columns, [&](auto type, auto width) {
    using T = decltype(type);
    constexpr int kVector = decltype(width)::value;
    return applyToColumns<kVector>(c, AddBias<T, kVector>{static_cast<T*>(y), bias, c.columns, relu, {}});
  });
}

cudaError_t biasGradient(Element element, const Columns& c, const void* dy, float* gradient) {
  return withVectors(element, c.columns, [&](auto type, auto width) {
    using T = decltype(type);
    constexpr int kVector = decltype(width)::value;
    return sumColumns<1, kVector>(c, SumRows<T, kVector>{static_cast<const T*>(dy), c.columns},
                                  WriteSum{gradient});
  });
}

}  // namespace muster::cuda
