// SPDX-License-Identifier: Apache-2.0
// The ring of a pointer chase: each line of memory holds where the next one is, and all of them are one
// circle in an order that no prefetcher guesses. Every backend writes the same.
#pragma once

#include <cstdint>

#include "kernels/spec/pattern.h"

namespace muster {

/// A circle through `lines` (a power of two) lines.
struct ChaseRing {
  uint64_t lines;
  uint64_t seed;

  /// The line that is visited at turn `turn`: a bijection of the turns of one round, made of additions, odd
  /// multiplications and shifted exclusive-ors modulo `lines`.
  [[nodiscard]] constexpr uint64_t line(uint64_t turn) const {
    const uint64_t mask = lines - 1;
    unsigned bits = 0;
    while (bits < 63 && (lines >> (bits + 1)) != 0) ++bits;
    const unsigned half = (bits + 1) / 2;
    uint64_t x = (turn + scatter(seed)) & mask;
    for (int round = 0; round < 3; ++round) {
      x = (x * 0x9e3779b97f4a7c15u) & mask;
      x ^= x >> (half == 0 ? 1 : half);
    }
    return x;
  }
};

/// Lines of `stride` bytes that a ring in `bytes` has: the largest power of two that fits.
constexpr uint64_t chaseLines(uint64_t bytes, uint64_t stride) {
  uint64_t lines = 1;
  while (lines * 2 * stride <= bytes) lines *= 2;
  return lines;
}

}  // namespace muster
