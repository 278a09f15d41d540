// SPDX-License-Identifier: Apache-2.0
// Softmax, cross-entropy, its gradient and the count of right rows: one block a row, two looks at its logits.
#include "kernels/cuda/dnn/device/vectors.cuh"

namespace muster::cuda {
namespace classifier_cu {

struct CombineParts {
  __device__ SoftmaxPart operator()(const SoftmaxPart& a, const SoftmaxPart& b) const {
    return combine(a, b);
  }
};

/// One exponential for each element and one for the vector, as the maximum is taken first.
template <int kVector>
__device__ inline SoftmaxPart withVector(const SoftmaxPart& part, const float (&v)[kVector]) {
  float top = part.top;
#pragma unroll
  for (int i = 0; i < kVector; ++i) top = maxOrNan(top, v[i]);
  float sum = part.sum * scaleTo(part.top, top);
#pragma unroll
  for (int i = 0; i < kVector; ++i) sum += scaleTo(v[i], top);
  return {top, sum};
}

template <typename T, int kVector>
__global__ void __launch_bounds__(kThreads) classifyRows(Classifier d) {
  for (int64_t row = blockIdx.x; row < d.rows; row += gridDim.x) {
    const T* x = static_cast<const T*>(d.logits) + row * d.classes;
    SoftmaxPart part;
    for (int64_t i = threadIdx.x * kVector; i < d.classes; i += kThreads * kVector) {
      float v[kVector];
      load<kVector>(x + i, v);
      part = withVector(part, v);
    }
    part = acrossBlock(part, SoftmaxPart{}, CombineParts{});
    const int64_t label = d.labels[row];
    if (threadIdx.x == 0) {
      const float own = toFloat(x[label]);
      d.losses[row] = logf(part.sum) - (own - part.top);
      d.right[row] = own == part.top ? 1 : 0;
    }
    if (d.gradient == nullptr) continue;
    const float share = 1.0f / static_cast<float>(d.rows);
    const float factor = share / part.sum;
    T* gradient = static_cast<T*>(d.gradient) + row * d.classes;
    for (int64_t i = threadIdx.x * kVector; i < d.classes; i += kThreads * kVector) {
      float v[kVector];
      load<kVector>(x + i, v);
#pragma unroll
      for (int j = 0; j < kVector; ++j)
        v[j] = expf(v[j] - part.top) * factor - (i + j == label ? share : 0.0f);
      store<kVector>(gradient + i, v);
    }
  }
}

struct AddDouble {
  __device__ double operator()(double a, double b) const { return a + b; }
};

/// One block: the order of the sum is fixed.
__global__ void __launch_bounds__(kThreads) sumRows(Classifier d) {
  double loss = 0, right = 0;
  for (int64_t row = threadIdx.x; row < d.rows; row += kThreads) {
    loss += d.losses[row];
    right += d.right[row];
  }
  loss = acrossBlock(loss, 0.0, AddDouble{});
  right = acrossBlock(right, 0.0, AddDouble{});
  if (threadIdx.x != 0) return;
  d.sums[0] = loss;
  d.sums[1] = right;
}

}  // namespace classifier_cu

using namespace classifier_cu;

cudaError_t classify(Element element, const Classifier& data, cudaStream_t stream) {
  const cudaError_t code = withVectors(element, data.classes, [&](auto type, auto width) {
    using T = decltype(type);
    classifyRows<T, decltype(width)::value>
        <<<static_cast<unsigned>(blocksFor(data.rows, 1)), kThreads, 0, stream>>>(data);
    return cudaGetLastError();
  });
  if (code != cudaSuccess) return code;
  sumRows<<<1, kThreads, 0, stream>>>(data);
  return cudaGetLastError();
}

}  // namespace muster::cuda
