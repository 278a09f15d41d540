// SPDX-License-Identifier: Apache-2.0
// What one thread of our kernels computes: the contents of 16 bytes, or what is wrong with them. Plain
// functions of an index, so that tests run them on the CPU.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cuda/host_device.h"
#include "kernels/spec/mismatch.h"
#include "kernels/spec/narrow_floats.h"
#include "kernels/spec/normal_values.h"
#include "kernels/spec/pattern.h"

namespace muster::cuda {

/// What a thread moves at once: the widest access there is on every architecture.
struct alignas(16) Unit {
  uint64_t low, high;
};
inline constexpr uint64_t kUnitBytes = sizeof(Unit);

/// Units that `bytes` fall into; the last one may be cut short.
constexpr uint64_t unitsOf(uint64_t bytes) {
  return bytes / kUnitBytes + (bytes % kUnitBytes != 0);
}
/// Bytes of unit `unit` that lie inside of a buffer of `bytes`.
constexpr uint64_t bytesOfUnit(uint64_t unit, uint64_t bytes) {
  const uint64_t left = bytes - unit * kUnitBytes;
  return left < kUnitBytes ? left : kUnitBytes;
}

/// The unit at `at`, of which only `count` bytes exist; the others are taken from `rest`. By shifts, here and
/// below: an array of bytes with a variable index would lie in the GPU's local memory.
MUSTER_HD inline Unit loadPart(const std::byte* at, uint64_t count, Unit rest) {
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t shift = i % 8 * 8, mask = 0xffull << shift, byte = static_cast<uint64_t>(at[i]) << shift;
    if (i < 8)
      rest.low = (rest.low & ~mask) | byte;
    else
      rest.high = (rest.high & ~mask) | byte;
  }
  return rest;
}
MUSTER_HD inline void storePart(std::byte* at, uint64_t count, const Unit& unit) {
  for (uint64_t i = 0; i < count; ++i)
    at[i] = static_cast<std::byte>((i < 8 ? unit.low : unit.high) >> (i % 8 * 8));
}

// --- Normally distributed numbers ---

/// Two N(0,1) values, from the same bits as the host's; logarithm, sine and cosine differ in their last bits.
struct FloatValues {
  float even, odd;
};
MUSTER_HD inline FloatValues floatValues(uint64_t bits) {
  const PolarPair<float> pair = floatPair(bits);
  const float radius = sqrtf(-2.0f * logf(pair.u));
  return {radius * cosf(pair.angle), radius * sinf(pair.angle)};
}

/// How a float becomes the `kBits` bits of an element.
struct ToF32 {
  static constexpr unsigned kBits = 32;
  MUSTER_HD static uint64_t code(float x) { return std::bit_cast<uint32_t>(x); }
};
struct ToBf16 {
  static constexpr unsigned kBits = 16;
  MUSTER_HD static uint64_t code(float x) { return toBf16(x); }
};
struct ToI8 {
  static constexpr unsigned kBits = 8;
  MUSTER_HD static uint64_t code(float x) {
    const float rounded = rintf(x * kI8Sigma);
    const float clamped = fminf(fmaxf(rounded, -127.0f), 127.0f);
    return static_cast<uint8_t>(static_cast<int8_t>(clamped));
  }
};
struct ToF16 {
  static constexpr unsigned kBits = 16;
  MUSTER_HD static uint64_t code(float x) {
    constexpr FloatFormat kFormat = kF16Format;
    return encodeFloat(x, kFormat);
  }
};
struct ToE4m3 {
  static constexpr unsigned kBits = 8;
  MUSTER_HD static uint64_t code(float x) {
    constexpr FloatFormat kFormat = kE4m3Format;
    return encodeFloat(x, kFormat);
  }
};
struct ToE5m2 {
  static constexpr unsigned kBits = 8;
  MUSTER_HD static uint64_t code(float x) {
    constexpr FloatFormat kFormat = kE5m2Format;
    return encodeFloat(x, kFormat);
  }
};
/// Two elements a byte, the even one in the low half, as tensor cores take them.
struct ToE2m1 {
  static constexpr unsigned kBits = 4;
  MUSTER_HD static uint64_t code(float x) {
    constexpr FloatFormat kFormat = kE2m1Format;
    return encodeFloat(x, kFormat);
  }
};

/// Word `index` (8 bytes) of a buffer filled with floats that `To` encodes.
template <typename To>
MUSTER_HD inline uint64_t normalWord(uint64_t key, uint64_t index) {
  constexpr unsigned kPairs = 32 / To::kBits;
  uint64_t word = 0;
  for (unsigned j = 0; j < kPairs; ++j) {
    const FloatValues values = floatValues(normalBits(key, index * kPairs + j));
    const uint64_t pair = To::code(values.even) | To::code(values.odd) << To::kBits;
    word |= pair << (2 * To::kBits * j);
  }
  return word;
}
template <typename To>
MUSTER_HD inline Unit normalUnit(uint64_t key, uint64_t unit) {
  return {normalWord<To>(key, 2 * unit), normalWord<To>(key, 2 * unit + 1)};
}

/// Two doubles, which are one pair.
struct ToF64 {
  static constexpr unsigned kBits = 64;
};
template <>
MUSTER_HD inline Unit normalUnit<ToF64>(uint64_t key, uint64_t unit) {
  const PolarPair<double> pair = doublePair(normalBits(key, unit));
  const double radius = sqrt(-2.0 * log(pair.u));
  return {std::bit_cast<uint64_t>(radius * cos(pair.angle)),
          std::bit_cast<uint64_t>(radius * sin(pair.angle))};
}

// --- Patterns, comparisons, hashes ---

MUSTER_HD constexpr Unit patternUnit(const PatternPart& part, uint64_t unit) {
  return {part.word(2 * unit), part.word(2 * unit + 1)};
}

/// Counts in `found` the bytes of a unit that differ from the pattern.
MUSTER_HD constexpr void checkUnit(const Unit& expected, const Unit& actual, uint64_t unit, Mismatch& found) {
  compareWord(expected.low, actual.low, unit * kUnitBytes, found);
  compareWord(expected.high, actual.high, unit * kUnitBytes + 8, found);
}

/// Counts in `found` the elements of a word that differ or are NaN. T: an unsigned integer of an element's
/// width.
template <typename T>
MUSTER_HD constexpr void compareWords(uint64_t x, uint64_t y, NanRule rule, uint64_t at, Mismatch& found) {
  for (unsigned i = 0; i < 8 / sizeof(T); ++i) {
    const unsigned shift = i * 8 * static_cast<unsigned>(sizeof(T));
    compareElement(static_cast<T>(x >> shift), static_cast<T>(y >> shift), rule, at + i * sizeof(T), found);
  }
}
template <typename T>
MUSTER_HD constexpr void compareUnits(const Unit& x, const Unit& y, NanRule rule, uint64_t unit,
                                      Mismatch& found) {
  compareWords<T>(x.low, y.low, rule, unit * kUnitBytes, found);
  compareWords<T>(x.high, y.high, rule, unit * kUnitBytes + 8, found);
}

/// A word's share of a buffer's hash: kernels/host/compare.h says how they add up.
constexpr uint64_t hashWord(uint64_t word, uint64_t byteOffset) {
  return scatter(word ^ scatter(byteOffset));
}
/// Of a unit with `count` bytes, the others zero: a word that does not exist has no share.
MUSTER_HD constexpr uint64_t hashUnit(const Unit& value, uint64_t unit, uint64_t count) {
  const uint64_t low = hashWord(value.low, unit * kUnitBytes);
  return count > 8 ? low + hashWord(value.high, unit * kUnitBytes + 8) : low;
}

}  // namespace muster::cuda
