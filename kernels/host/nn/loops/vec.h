// SPDX-License-Identifier: Apache-2.0
// Vectors of floats without intrinsics: the compiler maps them to what the instruction set has. They are
// loaded from and stored to f32 or bf16.
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
  typedef uint32_t Bits __attribute__((vector_size(32)));
  typedef uint16_t Half __attribute__((vector_size(16)));
};
template <>
struct VecOf<16> {
  typedef float Float __attribute__((vector_size(64)));
  typedef int32_t Int __attribute__((vector_size(64)));
  typedef uint32_t Bits __attribute__((vector_size(64)));
  typedef uint16_t Half __attribute__((vector_size(32)));
};
template <int B>
using Vec = typename VecOf<B>::Float;
template <int B>
using IntVec = typename VecOf<B>::Int;

constexpr int kLanes = 16;
using Float = Vec<kLanes>;
using Int = IntVec<kLanes>;

#define MUSTER_INLINE inline __attribute__((always_inline))

/// The upper half of a float.
struct Bf16 {
  uint16_t bits;
};

template <typename V = Float>
MUSTER_INLINE V load(const float* from) {
  V v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
template <typename V = Float>
MUSTER_INLINE V load(const Bf16* from) {
  using Set = VecOf<sizeof(V) / sizeof(float)>;
  typename Set::Half half;
  std::memcpy(&half, from, sizeof half);
  const auto bits = __builtin_convertvector(half, typename Set::Bits) << 16;
  V v;
  std::memcpy(&v, &bits, sizeof v);
  return v;
}
template <typename V>
MUSTER_INLINE void store(float* to, const V& v) {
  std::memcpy(to, &v, sizeof v);
}
/// Rounds to nearest, ties to even. NaN stays NaN: adding to its bits could carry over into a number's.
template <typename V>
MUSTER_INLINE void store(Bf16* to, const V& v) {
  using Set = VecOf<sizeof(V) / sizeof(float)>;
  typename Set::Bits bits;
  std::memcpy(&bits, &v, sizeof bits);
  const typename Set::Bits rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  const typename Set::Bits kept = v != v ? bits | 0x400000u : rounded;
  const auto half = __builtin_convertvector(kept >> 16, typename Set::Half);
  std::memcpy(to, &half, sizeof half);
}

/// One number.
MUSTER_INLINE float loadOne(const float* from) {
  return *from;
}
MUSTER_INLINE float loadOne(const Bf16* from) {
  const uint32_t bits = static_cast<uint32_t>(from->bits) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// The first `count` (less than the vector has) numbers, the rest `filler`.
template <typename T>
MUSTER_INLINE Float loadPart(const T* from, int64_t count, float filler) {
  T part[kLanes] = {};
  std::memcpy(part, from, static_cast<size_t>(count) * sizeof(T));
  const Float v = load(part);
  const Int lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return lane < static_cast<int32_t>(count) ? v : filler - Float{};
}
template <typename T, typename V>
MUSTER_INLINE void storePart(T* to, const V& v, int64_t count) {
  T part[sizeof(V) / sizeof(float)];
  store(part, v);
  std::memcpy(to, part, static_cast<size_t>(count) * sizeof(T));
}
/// A whole vector, or a part of one where fewer lanes are left.
template <typename T>
MUSTER_INLINE Float loadSome(const T* from, int64_t lanes, float filler = 0) {
  return lanes == kLanes ? load(from) : loadPart(from, lanes, filler);
}
template <typename T>
MUSTER_INLINE void storeSome(T* to, const Float& v, int64_t lanes) {
  if (lanes == kLanes)
    store(to, v);
  else
    storePart(to, v, lanes);
}

/// Calls body(first, lanes) for the vectors of [begin, end), and for the rest.
template <typename Body>
MUSTER_INLINE void eachVectorOf(int64_t begin, int64_t end, Body body) {
  int64_t i = begin;
  for (; i + kLanes <= end; i += kLanes) body(i, kLanes);
  if (i < end) body(i, static_cast<int>(end - i));
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
