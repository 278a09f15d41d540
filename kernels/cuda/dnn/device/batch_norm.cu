// SPDX-License-Identifier: Apache-2.0
// Batch normalisation over NHWC images with the residual's addition and ReLU in the same pass: two passes
// over memory forward, two backward. Sums are of distances from the first row, so that a mean far from zero
// costs no digits.
#include "kernels/cuda/dnn/device/columns.cuh"

namespace muster::cuda {
namespace batch_norm_cu {

template <int kVector>
__device__ inline void get(const float* from, int64_t column, float (&to)[kVector]) {
#pragma unroll
  for (int i = 0; i < kVector; ++i) to[i] = from[column + i];
}

/// Sums of distances from the first row, and of their squares.
template <typename T, int kVector>
struct Distances {
  const T* x;
  int64_t columns;
  float pivot[kVector];
  __device__ void begin(int64_t column) { load<kVector>(x + column, pivot); }
  __device__ void add(int64_t row, int64_t column, float (&sums)[2][kVector]) const {
    float v[kVector];
    load<kVector>(x + row * columns + column, v);
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      const float distance = v[i] - pivot[i];
      sums[0][i] += distance;
      sums[1][i] += distance * distance;
    }
  }
};

/// factors: y = factor0 x + factor1.
template <typename T>
struct FinishStatistics {
  BatchNormArrays a;
  const T* x;
  int64_t columns;
  float rows;
  __device__ void operator()(int64_t c, const float (&sums)[2]) const {
    const float distance = sums[0] / rows;
    const float mean = toFloat(x[c]) + distance;
    const float squares = sums[1] - sums[0] * distance;
    const float variance = squares < 0.0f ? 0.0f : squares / rows;  // NaN stays
    const float inverse = 1.0f / sqrtf(variance + a.epsilon);
    const float unbiased = rows > 1 ? variance * (rows / (rows - 1)) : variance;
    a.mean[c] = mean;
    a.inverse[c] = inverse;
    a.runningMean[c] += a.momentum * (mean - a.runningMean[c]);
    a.runningVariance[c] += a.momentum * (unbiased - a.runningVariance[c]);
    a.factors[c] = a.scale[c] * inverse;
    a.factors[columns + c] = a.shift[c] - mean * a.scale[c] * inverse;
  }
};

__global__ void __launch_bounds__(kThreads) evaluationFactors(BatchNormArrays a, int64_t columns) {
  eachIndex(columns, [&](int64_t c) {
    const float factor = a.scale[c] / sqrtf(a.runningVariance[c] + a.epsilon);
    a.factors[c] = factor;
    a.factors[columns + c] = a.shift[c] - a.runningMean[c] * factor;
  });
}

template <typename T, int kVector, bool kResidual, bool kRelu>
struct Apply {
  const T* x;
  const T* residual;
  T* y;
  const float* factors;
  int64_t columns;
  float factor[kVector], offset[kVector];
  __device__ void begin(int64_t column) {
    get(factors, column, factor);
    get(factors + columns, column, offset);
  }
  __device__ void apply(int64_t row, int64_t column) const {
    const int64_t at = row * columns + column;
    float v[kVector], r[kVector] = {};
    load<kVector>(x + at, v);
    if constexpr (kResidual) load<kVector>(residual + at, r);
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      v[i] = v[i] * factor[i] + offset[i] + r[i];
      if constexpr (kRelu) v[i] = reluOf(v[i]);
    }
    store<kVector>(y + at, v);
  }
};

/// Sums of the gradient behind the ReLU, and of it times the normalised input. With a residual that gradient
/// replaces dy; without one, the ReLU is told from x again and y need not be read.
template <typename T, int kVector, bool kResidual, bool kRelu>
struct GradientSums {
  const T* x;
  const T* y;
  T* dy;
  const float *means, *inverses, *factors;
  int64_t columns;
  float mean[kVector], inverse[kVector], factor[kVector], offset[kVector];
  __device__ void begin(int64_t column) {
    get(means, column, mean);
    get(inverses, column, inverse);
    if constexpr (kRelu && !kResidual) {
      get(factors, column, factor);
      get(factors + columns, column, offset);
    }
  }
  __device__ void add(int64_t row, int64_t column, float (&sums)[2][kVector]) const {
    const int64_t at = row * columns + column;
    float v[kVector], g[kVector], out[kVector] = {};
    load<kVector>(x + at, v);
    load<kVector>(dy + at, g);
    if constexpr (kRelu && kResidual) load<kVector>(y + at, out);
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      if constexpr (kRelu) g[i] = reluGradient(kResidual ? out[i] : v[i] * factor[i] + offset[i], g[i]);
      sums[0][i] += g[i];
      sums[1][i] += g[i] * ((v[i] - mean[i]) * inverse[i]);
    }
    if constexpr (kRelu && kResidual) store<kVector>(dy + at, g);
  }
};

/// Gradients of scale and shift; factors 2 and 3: dx = scale inverse g - factor2 (x - mean) - factor3.
struct FinishGradients {
  BatchNormArrays a;
  float* scale;
  float* shift;
  int64_t columns;
  float rows;
  __device__ void operator()(int64_t c, const float (&sums)[2]) const {
    shift[c] = sums[0];
    scale[c] = sums[1];
    const float factor = a.scale[c] * a.inverse[c];
    a.factors[2 * columns + c] = factor * a.inverse[c] * (sums[1] / rows);
    a.factors[3 * columns + c] = factor * (sums[0] / rows);
  }
};

template <typename T, int kVector, bool kRelu>
struct InputGradient {
  const T* x;
  const T* dy;
  T* dx;
  const float *means, *factors;
  int64_t columns;
  float mean[kVector], factor[kVector], offset[kVector], slope[kVector], constant[kVector];
  __device__ void begin(int64_t column) {
    get(means, column, mean);
    get(factors, column, factor);
    get(factors + columns, column, offset);
    get(factors + 2 * columns, column, slope);
    get(factors + 3 * columns, column, constant);
  }
  __device__ void apply(int64_t row, int64_t column) const {
    const int64_t at = row * columns + column;
    float v[kVector], g[kVector];
    load<kVector>(x + at, v);
    load<kVector>(dy + at, g);
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      if constexpr (kRelu) g[i] = reluGradient(v[i] * factor[i] + offset[i], g[i]);
      g[i] = factor[i] * g[i] - slope[i] * (v[i] - mean[i]) - constant[i];
    }
    store<kVector>(dx + at, g);
  }
};

template <typename T, int kVector>
cudaError_t applyAs(const Columns& c, const BatchNormArrays& a, const void* x, const void* residual,
                    void* y) {
  const auto run = [&](auto body) {
    body.x = static_cast<const T*>(x);
    body.residual = static_cast<const T*>(residual);
    body.y = static_cast<T*>(y);
    body.factors = a.factors;
    body.columns = c.columns;
    return applyToColumns<kVector>(c, body);
  };
  if (residual != nullptr)
    return a.relu ? run(Apply<T, kVector, true, true>{}) : run(Apply<T, kVector, true, false>{});
  return a.relu ? run(Apply<T, kVector, false, true>{}) : run(Apply<T, kVector, false, false>{});
}

template <typename T, int kVector>
cudaError_t backwardAs(const Columns& c, const BatchNormArrays& a, const BatchNormGradients& g) {
  const auto sums = [&](auto body) {
    body.x = static_cast<const T*>(g.x);
    body.y = static_cast<const T*>(g.y);
    body.dy = static_cast<T*>(g.dy);
    body.means = a.mean;
    body.inverses = a.inverse;
    body.factors = a.factors;
    body.columns = c.columns;
    return sumColumns<2, kVector>(
        c, body, FinishGradients{a, g.scale, g.shift, c.columns, static_cast<float>(c.rows)});
  };
  cudaError_t code = cudaSuccess;
  if (!a.relu)
    code = sums(GradientSums<T, kVector, false, false>{});
  else if (g.hasResidual)
    code = sums(GradientSums<T, kVector, true, true>{});
  else
    code = sums(GradientSums<T, kVector, false, true>{});
  if (code != cudaSuccess) return code;
  const auto input = [&](auto body) {
    body.x = static_cast<const T*>(g.x);
    body.dy = static_cast<const T*>(g.dy);
    body.dx = static_cast<T*>(g.dx);
    body.means = a.mean;
    body.factors = a.factors;
    body.columns = c.columns;
    return applyToColumns<kVector>(c, body);
  };
  return a.relu && !g.hasResidual ? input(InputGradient<T, kVector, true>{})
                                  : input(InputGradient<T, kVector, false>{});
}

}  // namespace batch_norm_cu

using namespace batch_norm_cu;

cudaError_t batchNormTrain(Element element, const Columns& c, const BatchNormArrays& a, const void* x,
                           const void* residual, void* y) {
  return withVectors(element, c.columns, [&](auto type, auto width) {
    using T = decltype(type);
    constexpr int kVector = decltype(width)::value;
    const auto* from = static_cast<const T*>(x);
    const cudaError_t code =
        sumColumns<2, kVector>(c, Distances<T, kVector>{from, c.columns, {}},
                               FinishStatistics<T>{a, from, c.columns, static_cast<float>(c.rows)});
    return code == cudaSuccess ? applyAs<T, kVector>(c, a, x, residual, y) : code;
  });
}

cudaError_t batchNormEvaluate(Element element, const Columns& c, const BatchNormArrays& a, const void* x,
                              const void* residual, void* y) {
  evaluationFactors<<<static_cast<unsigned>(blocksFor(c.columns)), kThreads, 0, c.stream>>>(a, c.columns);
  return withVectors(element, c.columns, [&](auto type, auto width) {
    using T = decltype(type);
    constexpr int kVector = decltype(width)::value;
    return applyAs<T, kVector>(c, a, x, residual, y);
  });
}

cudaError_t batchNormBackward(Element element, const Columns& c, const BatchNormArrays& a,
                              const BatchNormGradients& g) {
  return withVectors(element, c.columns, [&](auto type, auto width) {
    using T = decltype(type);
    constexpr int kVector = decltype(width)::value;
    return backwardAs<T, kVector>(c, a, g);
  });
}

}  // namespace muster::cuda
