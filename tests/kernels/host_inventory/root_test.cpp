// SPDX-License-Identifier: Apache-2.0
// Bounded reads of files that nobody vouches for.
#include "kernels/host/inventory/root.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/process.h"

namespace muster {
namespace {

using testing::TempDir;

TEST(Root, ReadsTextBelowItsPrefixAndTrimsIt) {
  const TempDir dir;
  dir.write("sys/a", "  42 kB\n");
  const Root root(dir.path());
  EXPECT_EQ(*root.text("/sys/a"), "42 kB");
  EXPECT_TRUE(root.exists("/sys/a"));
}

TEST(Root, TellsAMissingFileFromAnUnreadableOne) {
  const TempDir dir;
  dir.write("sys/folder/file", "x");
  const Root root(dir.path());
  EXPECT_EQ(root.text("/sys/none").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(root.text("/sys/folder").error().code, ErrorCode::kIo);
  EXPECT_NE(root.text("/sys/folder").error().text().find("/sys/folder: "), std::string::npos);
}

TEST(Root, RefusesAFileThatIsLargerThanItMayBe) {
  const TempDir dir;
  dir.write("huge", std::string(200'000, 'x'));
  const Root root(dir.path());
  EXPECT_EQ(root.text("/huge").error().code, ErrorCode::kProtocol);
  EXPECT_NE(root.text("/huge").error().message.find("65536"), std::string::npos);
  EXPECT_EQ(root.text("/huge", 1 << 20)->size(), 200'000u);
}

TEST(Root, NeverWaitsForAPipe) {
  const TempDir dir;
  ASSERT_EQ(mkfifo((dir.path() / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(Root(dir.path()).factOr("/pipe", "nothing"), "nothing");
}

TEST(Root, QuotesBinaryContentSafelyWhereANumberIsExpected) {
  const TempDir dir;
  dir.write("number", std::string("\x1b[31m\x00\xff", 7));
  const auto value = Root(dir.path()).integer("/number");
  ASSERT_FALSE(value.ok());
  EXPECT_EQ(value.error().text().find('\x1b'), std::string::npos);
  EXPECT_EQ(value.error().text().find('\xff'), std::string::npos);
}

TEST(Root, TakesNothingButAWholeNumberAsOne) {
  const TempDir dir;
  for (const char* text : {"", "max", "12 34", "0x10", "99999999999999999999", "1.5"}) {
    dir.write("number", text);
    EXPECT_FALSE(Root(dir.path()).integer("/number").ok()) << text;
    EXPECT_EQ(Root(dir.path()).integerOr("/number", -7), -7) << text;
  }
  dir.write("number", "-12\n");
  EXPECT_EQ(*Root(dir.path()).integer("/number"), -12);
}

TEST(CpuList, ReadsRangesAndLeavesOutWhatIsMalformed) {
  EXPECT_EQ(parseCpuList("0-3,8"), (std::vector<int>{0, 1, 2, 3, 8}));
  EXPECT_EQ(parseCpuList("x,2-,5,-1,7-6"), (std::vector<int>{5}));
  EXPECT_TRUE(parseCpuList("").empty());
  EXPECT_LE(parseCpuList("0-2147483647").size(), 65536u);
}

TEST(CpuList, WritesRanges) {
  EXPECT_EQ(formatCpuList({0, 1, 2, 3, 8}), "0-3,8");
  EXPECT_EQ(formatCpuList({5}), "5");
  EXPECT_EQ(formatCpuList({}), "");
}

TEST(FieldOf, FindsTheWholeKeyOnly) {
  const std::string text = "nr_throttled_x 1\nnr_throttled 3\nMemTotal:   12 kB\nNAME=\"a b\"\nempty:\n";
  EXPECT_EQ(fieldOf(text, "nr_throttled"), "3");
  EXPECT_EQ(fieldOf(text, "MemTotal"), "12 kB");
  EXPECT_EQ(fieldOf(text, "NAME"), "\"a b\"");
  EXPECT_EQ(fieldOf(text, "empty"), "");
  EXPECT_EQ(fieldOf(text, "missing"), "");
}

}  // namespace
}  // namespace muster
