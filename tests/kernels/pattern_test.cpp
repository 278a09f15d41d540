// SPDX-License-Identifier: Apache-2.0
// The words of memory patterns.
#include "kernels/spec/pattern.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(PatternWord, IsWhatItsNameSays) {
  EXPECT_EQ(patternWord(0, 17), 0u);
  EXPECT_EQ(patternWord(1, 17), ~0ull);
  EXPECT_EQ(patternWord(static_cast<uint64_t>(Pattern::kWalkingOne), 65), 2u);
  EXPECT_EQ(patternWord(static_cast<uint64_t>(Pattern::kAddress), 3), 24u);
  EXPECT_EQ(patternWord(static_cast<uint64_t>(Pattern::kInverseAddress), 3), ~24ull);
}

TEST(PatternPart, GoesOnWhereTheBufferBeforeEnded) {
  constexpr uint64_t kFar = uint64_t{5} << 40;
  for (const NamedPattern& named : kPatterns) {
    const auto number = static_cast<uint64_t>(named.pattern);
    EXPECT_EQ(PatternPart(number, kFar).word(3), patternWord(number, kFar + 3)) << named.name;
    EXPECT_EQ(PatternPart(number).word(3), patternWord(number, 3)) << named.name;
  }
}

TEST(PatternWord, DiffersBySeedAndIndexWhenRandom) {
  EXPECT_NE(patternWord(100, 0), patternWord(100, 1));
  EXPECT_NE(patternWord(100, 0), patternWord(101, 0));
  EXPECT_EQ(patternWord(100, 5), patternWord(100, 5));
}

}  // namespace
}  // namespace muster
