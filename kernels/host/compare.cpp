// SPDX-License-Identifier: Apache-2.0
// Comparisons of one thread's share of a buffer.
#include "kernels/host/compare.h"

#include <algorithm>
#include <cstring>

#include "kernels/pattern.h"

namespace muster::host {
namespace {

/// Bits above which the magnitude of an IEEE-like number is a NaN; types without NaN never are.
struct NanRule {
  uint64_t magnitude;  ///< all bits but the sign
  uint64_t infinity;   ///< the largest magnitude that is no NaN
};

NanRule nanRule(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF64:
      return {0x7fffffffffffffffu, 0x7ff0000000000000u};
    case Dtype::kF32:
    case Dtype::kTf32:
      return {0x7fffffffu, 0x7f800000u};
    case Dtype::kF16:
      return {0x7fffu, 0x7c00u};
    case Dtype::kBf16:
      return {0x7fffu, 0x7f80u};
    case Dtype::kFp8E4m3:
      return {0x7fu, 0x7eu};  // no infinity: S.1111.111 alone is NaN
    case Dtype::kFp8E5m2:
      return {0x7fu, 0x7cu};
    case Dtype::kI8:
    case Dtype::kFp4:
      return {0, 0};
  }
  return {0, 0};
}

template <typename T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <typename T>
Mismatch compareAs(const std::byte* a, const std::byte* b, NanRule rule, uint64_t begin, uint64_t end) {
  const T magnitude = static_cast<T>(rule.magnitude);
  const T infinity = static_cast<T>(rule.infinity);
  Mismatch result;
  for (uint64_t at = begin; at + sizeof(T) <= end; at += sizeof(T)) {
    const T x = load<T>(a + at);
    const T y = load<T>(b + at);
    if (x == y && (x & magnitude) <= infinity) continue;
    if (result.wrong++ == 0) result = {1, at, x, y};
  }
  return result;
}

/// Bytes of two words that differ.
unsigned differentBytes(uint64_t x, uint64_t y) {
  unsigned count = 0;
  for (uint64_t d = x ^ y; d != 0; d >>= 8) count += (d & 0xff) != 0;
  return count;
}

}  // namespace

Mismatch compareElements(const std::byte* a, const std::byte* b, Dtype dtype, uint64_t begin, uint64_t end) {
  const NanRule rule = nanRule(dtype);
  switch (dtypeBits(dtype)) {
    case 64:
      return compareAs<uint64_t>(a, b, rule, begin, end);
    case 32:
      return compareAs<uint32_t>(a, b, rule, begin, end);
    case 16:
      return compareAs<uint16_t>(a, b, rule, begin, end);
    default:
      return compareAs<uint8_t>(a, b, rule, begin, end);
  }
}

void fillPattern(std::byte* data, uint64_t pattern, uint64_t begin, uint64_t end) {
  for (uint64_t at = begin; at < end; at += 8) {
    const uint64_t word = patternWord(pattern, at / 8);
    std::memcpy(data + at, &word, std::min<uint64_t>(8, end - at));
  }
}

Mismatch checkPattern(const std::byte* data, uint64_t pattern, uint64_t begin, uint64_t end) {
  Mismatch result;
  for (uint64_t at = begin; at < end; at += 8) {
    const uint64_t expected = patternWord(pattern, at / 8);
    uint64_t actual = expected;  // so that bytes past the end are equal
    std::memcpy(&actual, data + at, std::min<uint64_t>(8, end - at));
    if (actual == expected) continue;
    if (result.wrong == 0) {
      result.firstOffset = at + static_cast<uint64_t>(__builtin_ctzll(actual ^ expected)) / 8;
      result.expectedBits = expected;
      result.actualBits = actual;
    }
    result.wrong += differentBytes(expected, actual);
  }
  return result;
}

uint64_t hashWords(const std::byte* data, uint64_t begin, uint64_t end) {
  uint64_t sum = 0;
  for (uint64_t at = begin; at < end; at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, data + at, std::min<uint64_t>(8, end - at));
    sum += scatter(word ^ scatter(at));
  }
  return sum;
}

Mismatch merge(const std::vector<Mismatch>& parts) {
  Mismatch whole;
  for (const Mismatch& part : parts) {
    if (part.wrong == 0) continue;
    const uint64_t wrong = whole.wrong + part.wrong;
    if (whole.wrong == 0) whole = part;
    whole.wrong = wrong;
  }
  return whole;
}

}  // namespace muster::host
