// SPDX-License-Identifier: Apache-2.0
// What kernels do with one element: bf16, f16, GELU, ReLU, optimizers. Plain functions that tests run on the
// CPU.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/cuda/host_device.h"
#include "kernels/spec/narrow_floats.h"
#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace muster::cuda {

/// bf16 as memory holds it; arithmetic is always f32, so that GPUs without bf16 instructions compile too.
struct Bf16 {
  uint16_t bits = 0;
};
/// f16 in the same way.
struct F16 {
  uint16_t bits = 0;
};

MUSTER_HD inline uint32_t bitsOf(float value) {
#if defined(__CUDA_ARCH__)
  return __float_as_uint(value);
#else
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
#endif
}
MUSTER_HD inline float floatOf(uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(bits);
#else
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
#endif
}

MUSTER_HD inline float toFloat(float value) {
  return value;
}
MUSTER_HD inline float toFloat(Bf16 value) {
  return floatOf(static_cast<uint32_t>(value.bits) << 16);
}
MUSTER_HD inline float toFloat(F16 value) {
#if defined(__CUDA_ARCH__)
  return __half2float(__ushort_as_half(value.bits));
#else
  return static_cast<float>(decodeFloat(value.bits, kF16Format));
#endif
}

/// To the nearest, ties to even, as the hardware's instruction does it; every NaN becomes 0x7FFF.
MUSTER_HD inline Bf16 toBf16(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  return {__bfloat16_as_ushort(__float2bfloat16_rn(value))};
#else
  if (value != value) return {0x7FFF};
  const uint32_t bits = bitsOf(value);
  return {static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16)};
#endif
}

/// To the nearest, ties to even; beyond 65504 infinity, every NaN becomes one.
MUSTER_HD inline F16 toF16(float value) {
#if defined(__CUDA_ARCH__)
  return {__half_as_ushort(__float2half_rn(value))};
#else
  return {static_cast<uint16_t>(encodeFloat(value, kF16Format))};
#endif
}

template <typename T>
MUSTER_HD inline T fromFloat(float value);
template <>
MUSTER_HD inline float fromFloat<float>(float value) {
  return value;
}
template <>
MUSTER_HD inline Bf16 fromFloat<Bf16>(float value) {
  return toBf16(value);
}
template <>
MUSTER_HD inline F16 fromFloat<F16>(float value) {
  return toF16(value);
}

/// NaN is not below zero and stays.
MUSTER_HD inline float reluOf(float x) {
  return x < 0.0f ? 0.0f : x;
}
/// The gradient behind a ReLU whose output was y.
MUSTER_HD inline float reluGradient(float y, float dy) {
  return y <= 0.0f ? 0.0f : dy;
}

/// The exact GELU, x P(X < x) of the normal distribution; cuBLASLt's epilogues only have its tanh form.
MUSTER_HD inline float geluOf(float x) {
  return 0.5f * x * erfcf(-x * 0.70710678f);
}
MUSTER_HD inline float geluSlope(float x) {
  return 0.5f * erfcf(-x * 0.70710678f) + x * 0.39894228f * expf(-0.5f * x * x);
}

/// What an optimizer's step needs; lies in device memory, so that a captured graph sees new values.
struct StepScalars {
  float learningRate = 0;
  float gradientScale = 1;
  float momentum = 0;                      ///< SGD: 0 in the first step
  float correction1 = 1, correction2 = 1;  ///< AdamW: 1 - beta^step
};

/// m = momentum m + (g + decay p); p -= rate m.
MUSTER_HD inline void sgdElement(const StepScalars& s, float decay, float g, float& p, float& m) {
  m = s.momentum * m + (g * s.gradientScale + decay * p);
  p -= s.learningRate * m;
}

struct AdamFactors {
  float beta1 = 0, beta2 = 0, epsilon = 0;
};

/// A parameter and the moments of its gradients.
struct AdamState {
  float &p, &m, &v;
};

/// AdamW (Loshchilov and Hutter 2019) with bias correction, as torch.optim.AdamW.
MUSTER_HD inline void adamElement(const StepScalars& s, const AdamFactors& f, float decay, float g,
                                  const AdamState& at) {
  auto& [p, m, v] = at;
  const float gradient = g * s.gradientScale;
  m = f.beta1 * m + (1 - f.beta1) * gradient;
  v = f.beta2 * v + (1 - f.beta2) * gradient * gradient;
  const float decayed = p - s.learningRate * decay * p;
  p = decayed - s.learningRate / s.correction1 * m / (sqrtf(v) / sqrtf(s.correction2) + f.epsilon);
}

}  // namespace muster::cuda
