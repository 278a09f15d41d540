// SPDX-License-Identifier: Apache-2.0
// Vectors of floats without intrinsics: the compiler maps them to what the instruction set has.
#pragma once

#include <omp.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>

#ifndef MUSTER_ISA
#define MUSTER_ISA base
#endif

#if defined(__GNUC__) && !defined(__clang__)
// Functions that take or give vectors are all inlined: their calling convention does not matter.
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

namespace muster::host::MUSTER_ISA {

template <int B>
struct VecOf;
template <>
struct VecOf<8> {
  typedef float Float __attribute__((vector_size(32)));
  typedef int32_t Int __attribute__((vector_size(32)));
};
template <>
struct VecOf<16> {
  typedef float Float __attribute__((vector_size(64)));
  typedef int32_t Int __attribute__((vector_size(64)));
};
template <int B>
using Vec = typename VecOf<B>::Float;
template <int B>
using IntVec = typename VecOf<B>::Int;

constexpr int kLanes = 16;
using Float = Vec<kLanes>;
using Int = IntVec<kLanes>;

#define MUSTER_INLINE inline __attribute__((always_inline))

template <typename V = Float>
MUSTER_INLINE V load(const float* from) {
  V v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
template <typename V>
MUSTER_INLINE void store(float* to, const V& v) {
  std::memcpy(to, &v, sizeof v);
}
/// The first `count` (< kLanes) numbers, the rest `filler`.
MUSTER_INLINE Float loadPart(const float* from, int64_t count, float filler) {
  Float v = filler - Float{};
  std::memcpy(&v, from, static_cast<size_t>(count) * sizeof(float));
  return v;
}
MUSTER_INLINE void storePart(float* to, const Float& v, int64_t count) {
  std::memcpy(to, &v, static_cast<size_t>(count) * sizeof(float));
}

/// Always the same order of additions.
MUSTER_INLINE float sumOf(const Float& v) {
  float s[kLanes];
  store(s, v);
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) s[i] += s[i + width];
  return s[0];
}

/// Share [begin, end) of `count` that this thread of a team takes.
struct Share {
  int64_t begin, end;
};
MUSTER_INLINE Share shareOf(int64_t count) {
  const int64_t threads = omp_get_num_threads();
  const int64_t thread = omp_get_thread_num();
  return {count * thread / threads, count * (thread + 1) / threads};
}

/// e^x to 2 units in the last place; below -87 it stays at e^-87. NaN stays NaN.
MUSTER_INLINE Float expOf(Float x) {
  const Float low = -87.0f - Float{};
  const Float high = 88.0f - Float{};
  x = x < low ? low : x;
  x = x > high ? high : x;
  const float rounder = 12582912.0f;  // 1.5 x 2^23: adding it leaves no fraction
  const Float n = (x * 1.44269504f + rounder) - rounder;
  const Float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;  // ln 2 in two parts
  Float p = 1.0f / 5040 + Float{};
  for (const float c : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f}) p = p * r + c;
  const Int exponent = (__builtin_convertvector(n, Int) + 127) << 23;
  Float scale;
  std::memcpy(&scale, &exponent, sizeof scale);
  return p * scale;
}

}  // namespace muster::host::MUSTER_ISA
