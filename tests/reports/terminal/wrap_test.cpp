// SPDX-License-Identifier: Apache-2.0
// Text in columns.
#include "reports/terminal/wrap.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using Lines = std::vector<std::string>;

TEST(Wrap, BreaksAtSpaces) {
  EXPECT_EQ(wrapText("one two three four", 9), (Lines{"one two", "three", "four"}));
}

TEST(Wrap, BreaksWordsThatAreTooLong) {
  EXPECT_EQ(wrapText("abcdefghijkl", 8), (Lines{"abcdefgh", "ijkl"}));
  EXPECT_EQ(wrapText("a abcdefghijklmnopq", 8), (Lines{"a", "abcdefgh", "ijklmnop", "q"}));
}

TEST(Wrap, CountsCodePoints) {
  EXPECT_EQ(wrapText("éééééééé é", 8), (Lines{"éééééééé", "é"}));
}

TEST(Wrap, IsNeverEmpty) {
  EXPECT_EQ(wrapText("", 20), Lines{""});
}

}  // namespace
}  // namespace muster
