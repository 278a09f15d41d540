// SPDX-License-Identifier: Apache-2.0
// Optimizers: one pass over the flat buffers, which also writes the 16-bit copy of the parameters.
#include "kernels/cuda/dnn/device/vectors.cuh"

namespace muster::cuda {
namespace optimizer_cu {

constexpr int kVector = 4;

__global__ void writeScalars(StepScalars* to, StepScalars values) {
  *to = values;
}

/// Calls body(i, j) with four elements of each array in registers, and writes them back.
template <bool kSecond, typename Body>
__device__ inline void eachParameter(const Optimized& d, Body body) {
  const StepScalars scalars = *d.scalars;
  eachIndex(d.count / kVector, [&](int64_t index) {
    const int64_t at = index * kVector;
    const float decay = d.decays[at / kDecayBlock] != 0 ? d.weightDecay : 0.0f;
    float g[kVector], p[kVector], m[kVector], v[kVector] = {};
    load<kVector>(d.gradient + at, g);
    load<kVector>(d.parameters + at, p);
    load<kVector>(d.first + at, m);
    if constexpr (kSecond) load<kVector>(d.second + at, v);
#pragma unroll
    for (int j = 0; j < kVector; ++j) body(scalars, decay, g[j], p[j], m[j], v[j]);
    store<kVector>(d.parameters + at, p);
    store<kVector>(d.first + at, m);
    if constexpr (kSecond) store<kVector>(d.second + at, v);
    if (d.element == Element::kBf16) store<kVector>(static_cast<Bf16*>(d.low) + at, p);
    if (d.element == Element::kF16) store<kVector>(static_cast<F16*>(d.low) + at, p);
  });
}

__global__ void __launch_bounds__(kThreads) sgd(Optimized d) {
  eachParameter<false>(d, [](const StepScalars& s, float decay, float g, float& p, float& m, float&) {
    sgdElement(s, decay, g, p, m);
  });
}

__global__ void __launch_bounds__(kThreads) adam(Optimized d, AdamFactors factors) {
  eachParameter<true>(d, [&](const StepScalars& s, float decay, float g, float& p, float& m, float& v) {
    adamElement(s, factors, decay, g, {p, m, v});
  });
}

unsigned gridOf(const Optimized& data) {
  return static_cast<unsigned>(blocksFor(data.count / kVector));
}

}  // namespace optimizer_cu

using namespace optimizer_cu;

cudaError_t setScalars(StepScalars* to, const StepScalars& values, cudaStream_t stream) {
  writeScalars<<<1, 1, 0, stream>>>(to, values);
  return cudaGetLastError();
}

cudaError_t sgdStep(const Optimized& data, cudaStream_t stream) {
  sgd<<<gridOf(data), kThreads, 0, stream>>>(data);
  return cudaGetLastError();
}

cudaError_t adamStep(const Optimized& data, const AdamFactors& factors, cudaStream_t stream) {
  adam<<<gridOf(data), kThreads, 0, stream>>>(data, factors);
  return cudaGetLastError();
}

}  // namespace muster::cuda
