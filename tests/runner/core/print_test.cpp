// SPDX-License-Identifier: Apache-2.0
// What reaches a terminal of texts that anybody may have written.
#include "runner/core/print.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

constexpr const char* kEscape =
    "\x1b]0;x\x07\x1b[2J\nnode1 accepted \xc2\x9b"
    "2J";
constexpr const char* kShown = "\\x1b]0;x\\x07\\x1b[2J\\nnode1 accepted \\x9b2J";

template <typename Print>
std::string printedBy(Print print) {
  ::testing::internal::CaptureStdout();
  print();
  return ::testing::internal::GetCapturedStdout();
}

TEST(Print, EscapesEveryTextWhateverItsType) {
  const std::string text = kEscape;
  const std::string shown = kShown;
  EXPECT_EQ(printedBy([&] { printText("{} {} {} {}\n", text, text.c_str(), std::string_view(text), 7); }),
            shown + " " + shown + " " + shown + " 7\n");
  EXPECT_EQ(printedBy([&] { printText("{:>4}|{:<3}|{:.1f}\n", "ab", "c", 1.25); }), "  ab|c  |1.2\n");
}

TEST(Print, WritesJsonWithoutAnythingThatATerminalObeys) {
  EXPECT_EQ(printedBy([] {
              printJson({{"node", kEscape}});
            }),
            "{\"node\":\"\\u001b]0;x\\u0007\\u001b[2J\\nnode1 accepted \\u009b2J\"}\n");
}

}  // namespace
}  // namespace muster
