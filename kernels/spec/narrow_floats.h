// SPDX-License-Identifier: Apache-2.0
// Rounding to floats narrower than 32 bits, the same bits on every backend.
#pragma once

#include <bit>
#include <cstdint>

namespace muster {

/// The bfloat16 nearest to `value`, ties to even. NaN stays NaN.
constexpr uint16_t toBf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
constexpr float fromBf16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

/// A binary format: sign, `exponent` bits with the usual bias 2^(exponent-1) - 1, `mantissa` bits.
struct FloatFormat {
  unsigned exponent;
  unsigned mantissa;
  uint32_t largest;   ///< code of the largest finite magnitude
  uint32_t overflow;  ///< code of what rounds beyond it: infinity, or `largest` where the format saturates
  uint32_t nan;       ///< code of a NaN; `overflow` where there is none
};

inline constexpr FloatFormat kF16Format = {5, 10, 0x7bff, 0x7c00, 0x7e00};
/// OCP 8-bit floats as tensor cores take them ("OCP 8-bit Floating Point Specification", 2023), saturating.
inline constexpr FloatFormat kE4m3Format = {4, 3, 0x7e, 0x7e, 0x7f};
inline constexpr FloatFormat kE5m2Format = {5, 2, 0x7b, 0x7b, 0x7e};
/// The 4-bit element of OCP microscaling formats: 0, 0.5, 1, 1.5, 2, 3, 4, 6.
inline constexpr FloatFormat kE2m1Format = {2, 1, 0x7, 0x7, 0x7};

/// The code of the value of `format` that is nearest to `value`, ties to even.
constexpr uint32_t encodeFloat(float value, const FloatFormat& format) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t sign = (bits >> 31) << (format.exponent + format.mantissa);
  if (magnitude > 0x7f800000u) return sign | format.nan;
  const int bias = (1 << (format.exponent - 1)) - 1;
  const int exponent = static_cast<int>(magnitude >> 23) - 127 + bias;
  const unsigned drop = 23 - format.mantissa;  // bits of the fraction that go
  uint32_t code = 0;
  if (exponent >= 1) {
    const uint32_t rounded = magnitude + ((1u << (drop - 1)) - 1) + ((magnitude >> drop) & 1u);
    code = (rounded >> drop) - (static_cast<uint32_t>(127 - bias) << format.mantissa);
    if (code > format.largest) code = format.overflow;
  } else if (const unsigned shift = drop + static_cast<unsigned>(1 - exponent); shift <= 24) {
    const uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;  // below the normal range: fixed point
    code = (significand + ((1u << (shift - 1)) - 1) + ((significand >> shift) & 1u)) >> shift;
  }
  return sign | code;
}

/// The value that a code stands for. Exact: a double holds all values of narrow formats.
constexpr double decodeFloat(uint32_t code, const FloatFormat& format) {
  const uint32_t top = 1u << (format.exponent + format.mantissa);  // the sign
  const uint32_t magnitude = code & (top - 1);
  const uint64_t sign = (code & top) != 0 ? 1ull << 63 : 0;
  if (magnitude > format.largest) {
    const bool infinite = magnitude == format.largest + 1 && magnitude != format.nan;
    return std::bit_cast<double>(sign | (infinite ? 0x7ff0000000000000u : 0x7ff8000000000000u));
  }
  const uint32_t field = magnitude >> format.mantissa;
  const uint32_t fraction = magnitude & ((1u << format.mantissa) - 1);
  const uint32_t significand = field == 0 ? fraction : fraction + (1u << format.mantissa);
  const int bias = (1 << (format.exponent - 1)) - 1 + static_cast<int>(format.mantissa);
  const int power = static_cast<int>(field == 0 ? 1 : field) - bias;
  const auto unit = std::bit_cast<double>(static_cast<uint64_t>(power + 1023) << 52);
  const double value = static_cast<double>(significand) * unit;
  return sign != 0 ? -value : value;
}

}  // namespace muster
