// SPDX-License-Identifier: Apache-2.0
// Lines out of arbitrary pieces, and the bound on their length.
#include "runner/dispatch/frame_lines.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster {
namespace {

struct Collected {
  FrameLines lines;
  std::vector<std::string> got;
  bool feed(std::string_view bytes) {
    return lines.feed(bytes, [&](std::string_view line) { got.emplace_back(line); });
  }
};

TEST(FrameLines, JoinsPieces) {
  Collected c;
  EXPECT_TRUE(c.feed("on"));
  EXPECT_TRUE(c.lines.torn());
  EXPECT_TRUE(c.feed("e\ntwo\n\nthr"));
  EXPECT_TRUE(c.feed("ee\n"));
  EXPECT_EQ(c.got, (std::vector<std::string>{"one", "two", "", "three"}));
  EXPECT_FALSE(c.lines.torn());
}

TEST(FrameLines, TakesTheLongestLineAndNoLongerOne) {
  Collected longest;
  EXPECT_TRUE(longest.feed(std::string(FrameLines::kMaxLine - 1, 'x') + "\n"));
  EXPECT_EQ(longest.got.size(), 1U);
  Collected tooLong;
  EXPECT_FALSE(tooLong.feed(std::string(FrameLines::kMaxLine, 'x')));
  EXPECT_FALSE(tooLong.feed("\nmore\n"));
  EXPECT_TRUE(tooLong.got.empty());
}

}  // namespace
}  // namespace muster
