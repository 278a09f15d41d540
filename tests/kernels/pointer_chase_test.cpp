// SPDX-License-Identifier: Apache-2.0
// The ring of a pointer chase: one circle through every line, and no order that can be guessed.
#include "kernels/checks/pointer_chase.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace muster {
namespace {

TEST(ChaseRing, VisitsEachLineOnceARound) {
  for (uint64_t lines = 1; lines <= 1u << 16; lines *= 2) {
    const ChaseRing ring{lines, 7};
    std::vector<bool> seen(lines);
    for (uint64_t turn = 0; turn < lines; ++turn) {
      const uint64_t line = ring.line(turn);
      ASSERT_LT(line, lines);
      ASSERT_FALSE(seen[line]) << lines << ", " << turn;
      seen[line] = true;
    }
    EXPECT_EQ(ring.line(lines), ring.line(0));  // and closes
    EXPECT_EQ(ring.line(5 * lines + 3), ring.line(3));
  }
}

TEST(ChaseRing, SeldomGoesToANeighbour) {
  const ChaseRing ring{1u << 16, 7};
  int near = 0;
  for (uint64_t turn = 0; turn < ring.lines; ++turn) {
    const auto step = static_cast<int64_t>(ring.line(turn + 1)) - static_cast<int64_t>(ring.line(turn));
    near += step >= -8 && step <= 8;
  }
  EXPECT_LT(near, 100);  // of 65536; chance alone would give 16
}

TEST(ChaseRing, DiffersBySeed) {
  int same = 0;
  for (uint64_t turn = 0; turn < 1024; ++turn)
    same += ChaseRing{1024, 1}.line(turn) == ChaseRing{1024, 2}.line(turn);
  EXPECT_LT(same, 20);
}

TEST(ChaseRing, HasLinesPast32Bits) {
  const ChaseRing ring{1ull << 34, 1};
  uint64_t largest = 0;
  for (uint64_t turn = 0; turn < 1000; ++turn) largest = std::max(largest, ring.line(turn));
  EXPECT_GT(largest, 1ull << 33);
  EXPECT_LT(largest, 1ull << 34);
}

TEST(ChaseLines, AreTheLargestPowerOfTwoThatFits) {
  EXPECT_EQ(chaseLines(64, 64), 1u);
  EXPECT_EQ(chaseLines(127, 64), 1u);
  EXPECT_EQ(chaseLines(128, 64), 2u);
  EXPECT_EQ(chaseLines((1ull << 40) + 1, 128), 1ull << 33);
}

}  // namespace
}  // namespace muster
