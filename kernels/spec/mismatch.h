// SPDX-License-Identifier: Apache-2.0
// What comparisons find, and the rules by which an element or a word is wrong. Every backend counts by these.
#pragma once

#include <cstdint>

#include "kernels/spec/dtype.h"

namespace muster {

/// Result of a comparison; NaN in either side counts as different.
struct Mismatch {
  uint64_t wrong = 0;         ///< elements (compare) or bytes (pattern) that differ
  uint64_t firstOffset = 0;   ///< byte offset of the first one
  uint64_t expectedBits = 0;  ///< its 8 bytes as they should be (pattern test)
  uint64_t actualBits = 0;    ///< and as they were read
};

/// Two shares of a buffer together, in any order: counts add up, the lower first offset wins.
constexpr Mismatch combine(const Mismatch& a, const Mismatch& b) {
  const bool takeB = a.wrong == 0 || (b.wrong != 0 && b.firstOffset < a.firstOffset);
  Mismatch both = takeB ? b : a;
  both.wrong = a.wrong + b.wrong;
  return both;
}

/// A comparison and a later one together: counts add up, the difference that was found first stays.
constexpr Mismatch followedBy(const Mismatch& earlier, const Mismatch& later) {
  Mismatch both = earlier.wrong == 0 ? later : earlier;
  both.wrong = earlier.wrong + later.wrong;
  return both;
}

/// Bits above which the magnitude of an IEEE-like number is a NaN; types without NaN never are.
struct NanRule {
  uint64_t magnitude;  ///< all bits but the sign
  uint64_t infinity;   ///< the largest magnitude that is no NaN
};

constexpr NanRule nanRule(Dtype dtype) {
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

/// Counts the element at byte offset `at` in `found` where the two differ or are NaN. Offsets only grow
/// within one `found`. T: the unsigned integer of the element's width.
template <typename T>
constexpr void compareElement(T x, T y, NanRule rule, uint64_t at, Mismatch& found) {
  if (x == y && (x & static_cast<T>(rule.magnitude)) <= static_cast<T>(rule.infinity)) return;
  if (found.wrong++ == 0) found = {1, at, x, y};
}

/// Counts the bytes of the word at byte offset `at` that differ.
constexpr void compareWord(uint64_t expected, uint64_t actual, uint64_t at, Mismatch& found) {
  if (actual == expected) return;
  uint64_t before = 0;  // equal bytes in front of the first wrong one
  for (uint64_t d = actual ^ expected; (d & 0xff) == 0; d >>= 8) ++before;
  if (found.wrong == 0) found = {0, at + before, expected, actual};
  for (uint64_t d = actual ^ expected; d != 0; d >>= 8) found.wrong += (d & 0xff) != 0;
}

}  // namespace muster
