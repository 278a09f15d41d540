// SPDX-License-Identifier: Apache-2.0
// The data patterns of memory tests: what each 64-bit word must hold. Every backend writes and checks the
// same words.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace muster {

/// Patterns with a fixed number; every number from kFirstRandom on is a seed of pseudo-random words.
enum class Pattern : uint64_t {
  kZeros = 0,
  kOnes = 1,
  kCheckerboard = 2,         ///< 0x5555...: each bit differs from its neighbours
  kInverseCheckerboard = 3,  ///< 0xAAAA...
  kWalkingOne = 4,           ///< one bit set, a place further in each word
  kWalkingZero = 5,
  kAddress = 6,  ///< each word holds its own address: finds address lines that are stuck or crossed
  kInverseAddress = 7,
  kFirstRandom = 8,
};

struct NamedPattern {
  const char* name;
  Pattern pattern;
};
/// By name; "random" stands for a seed that the caller adds to kFirstRandom.
inline constexpr std::array kPatterns = {
    NamedPattern{"zeros", Pattern::kZeros},
    NamedPattern{"ones", Pattern::kOnes},
    NamedPattern{"checkerboard", Pattern::kCheckerboard},
    NamedPattern{"inverse_checkerboard", Pattern::kInverseCheckerboard},
    NamedPattern{"walking_one", Pattern::kWalkingOne},
    NamedPattern{"walking_zero", Pattern::kWalkingZero},
    NamedPattern{"address", Pattern::kAddress},
    NamedPattern{"inverse_address", Pattern::kInverseAddress},
    NamedPattern{"random", Pattern::kFirstRandom},
};

/// A bijection that scatters counters over 64 bits: SplitMix64's finalizer (Steele, Lea, Flood, OOPSLA 2014).
constexpr uint64_t scatter(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// What word `index` of a buffer holds under `pattern` (a Pattern, or kFirstRandom plus a seed).
constexpr uint64_t patternWord(uint64_t pattern, uint64_t index) {
  switch (static_cast<Pattern>(pattern)) {
    case Pattern::kZeros:
      return 0;
    case Pattern::kOnes:
      return ~0ull;
    case Pattern::kCheckerboard:
      return 0x5555555555555555u;
    case Pattern::kInverseCheckerboard:
      return 0xaaaaaaaaaaaaaaaau;
    case Pattern::kWalkingOne:
      return 1ull << (index % 64);
    case Pattern::kWalkingZero:
      return ~(1ull << (index % 64));
    case Pattern::kAddress:
      return index * 8;
    case Pattern::kInverseAddress:
      return ~(index * 8);
    default:
      return scatter(scatter(pattern) ^ index);
  }
}

/// The words of a pattern that one buffer holds, of the many that it may go on through: a number alone stands
/// for a pattern that begins with the buffer.
struct PatternPart {
  uint64_t pattern;
  uint64_t first;  ///< index of the buffer's first word
  constexpr PatternPart(uint64_t pattern, uint64_t first = 0) : pattern(pattern), first(first) {}
  [[nodiscard]] constexpr uint64_t word(uint64_t index) const { return patternWord(pattern, first + index); }
};

}  // namespace muster
