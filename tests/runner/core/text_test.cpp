// SPDX-License-Identifier: Apache-2.0
// Nearest names, printable and valid text, plain names.
#include "runner/core/text.h"

#include <gtest/gtest.h>

#include <ctime>
#include <utility>

namespace muster {
namespace {

const std::vector<std::string> kMetrics = {"compute.gemm_throughput", "compute.gemm_wrong_elements",
                                           "memory.copy"};

TEST(NearestName, FindsTyposSwapsAndOtherCase) {
  EXPECT_EQ(nearestName("timeuot", {"timeout", "name"}), "timeout");
  EXPECT_EQ(nearestName("TIMEOUT", {"timeout", "name"}), "timeout");
  EXPECT_EQ(nearestName("compute.gemm_throughptu", kMetrics), "compute.gemm_throughput");
}

TEST(NearestName, TakesTheNearestOfSeveral) {
  EXPECT_EQ(nearestName("gem", {"gemv", "gemm", "gem2", "gen"}), "gemv");  // all at one step: the first
  EXPECT_EQ(nearestName("repeats", {"repetition", "repeat"}), "repeat");
}

TEST(NearestName, KnowsANameWithoutItsPlugin) {
  EXPECT_EQ(nearestName("gemm_throughput", kMetrics), "compute.gemm_throughput");
}

TEST(NearestName, StaysSilentWhenNothingIsNear) {
  EXPECT_EQ(nearestName("zebra", kMetrics), std::nullopt);
  EXPECT_EQ(nearestName("x", {"y"}), std::nullopt);
  EXPECT_EQ(nearestName("ab", {"ac"}), std::nullopt);
  EXPECT_EQ(nearestName("", {"a"}), std::nullopt);
  EXPECT_EQ(nearestName("name", {}), std::nullopt);
}

TEST(NearestName, IsNotSlowedByEndlessNames) {
  const std::string endless(10'000'000, 'a');
  EXPECT_EQ(nearestName(endless, {endless, "a"}), std::nullopt);
  EXPECT_EQ(nearestName("a", {endless}), std::nullopt);
}

TEST(Suggester, StopsSuggestingBeforeAThousandNamesTakeMinutes) {
  std::vector<std::string> candidates(1000, std::string(125, 'b'));
  candidates.push_back("timeout");
  Suggester suggester;
  EXPECT_EQ(suggester.nearestName("timeuot", candidates), "timeout");
  const std::clock_t before = std::clock();
  for (int i = 0; i < 1000; ++i) suggester.nearestName(std::string(125, 'a'), candidates);
  EXPECT_LT((std::clock() - before) / CLOCKS_PER_SEC, 10);
  EXPECT_EQ(suggester.nearestName("timeuot", candidates), std::nullopt);
  EXPECT_EQ(nearestName("timeuot", candidates), "timeout") << "alone, it is the first";
}

TEST(DidYouMean, IsAWholeClauseOrNothing) {
  EXPECT_EQ(didYouMean("scop", {"scope"}), "; did you mean \"scope\"?");
  EXPECT_EQ(didYouMean("zebra", {"scope"}), "");
}

TEST(Printable, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(printable("a\x1b[31mb\nc\td\re\x7f"), "a\\x1b[31mb\\nc\\td\\re\\x7f");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\xC2\x9B"), "\\x9b");  // C1: an escape on some terminals
  EXPECT_EQ(printable("\xE2\x80\xAE"
                      "abc"),
            "\\u202eabc");  // turns the text around
}

TEST(Printable, EscapesWhatNobodySees) {
  const std::pair<const char*, const char*> kHidden[] = {
      {"\u00AD", "\\xad"},           {"\u061C", "\\u061c"},        {"\u180E", "\\u180e"},
      {"\u200B", "\\u200b"},         {"\u200C", "\\u200c"},        {"\u200F", "\\u200f"},
      {"\u2028", "\\u2028"},         {"\u2029", "\\u2029"},        {"\u2060", "\\u2060"},
      {"\u2065", "\\u2065"},         {"\u206F", "\\u206f"},        {"\uFE0F", "\\ufe0f"},
      {"\uFEFF", "\\ufeff"},         {"\uFFF9", "\\ufff9"},        {"\uFFFB", "\\ufffb"},
      {"\U000E0000", "\\U000e0000"}, {"\U000E007F", "\\U000e007f"}};
  for (const auto& [character, shown] : kHidden) EXPECT_EQ(printable(character), shown);
  EXPECT_EQ(printable("\u2010\u2030\uFFFD"), "\u2010\u2030\uFFFD");
}

TEST(Printable, KeepsLettersOfAllLanguages) {
  EXPECT_EQ(printable("85 °C 例 😀"), "85 °C 例 😀");
}

TEST(Printable, ReplacesInvalidBytes) {
  EXPECT_EQ(printable("a\xFFz"), "a\xEF\xBF\xBDz");
  EXPECT_EQ(printable("\xC3"), "\xEF\xBF\xBD");
}

TEST(Printable, CutsAtACharacterAndSaysSo) {
  EXPECT_EQ(printable("abcdefgh", 8), "abcdefgh");
  EXPECT_EQ(printable("abcdefghi", 8), "abcde...");
  EXPECT_EQ(printable("ab°°°°°", 8), "ab°...");
  for (size_t limit = 0; limit < 12; ++limit) EXPECT_LE(printable("°\n°\x1b°°°°°°", limit).size(), limit);
}

TEST(ValidUtf8, ReplacesEachInvalidByteAndNothingElse) {
  EXPECT_EQ(validUtf8("plain °C 😀"), "plain °C 😀");
  EXPECT_EQ(validUtf8("\xC0\xAF"), "\xEF\xBF\xBD\xEF\xBF\xBD");  // overlong
  EXPECT_EQ(validUtf8("\xED\xA0\x80").size(), 9u);               // a surrogate: three bad bytes
  EXPECT_EQ(validUtf8("\xF4\x90\x80\x80").size(), 12u);          // above U+10FFFF
  EXPECT_EQ(validUtf8("\xE2\x82"), "\xEF\xBF\xBD\xEF\xBF\xBD");  // cut off
  EXPECT_EQ(validUtf8("\x1b"), "\x1b");                          // valid, if not printable
}

TEST(PlainName, AllowsOnlyWhatIsSafeInAPathAndACommand) {
  for (const char* good : {"gemm", "fp8_e4m3", "h100-sxm5-80gb", "a.b", "0"})
    EXPECT_TRUE(isPlainName(good)) << good;
  for (const char* bad : {"", ".", ".hidden", "-rf", "a/b", "a b", "a\n", "ä", "a$b", "../x"})
    EXPECT_FALSE(isPlainName(bad)) << bad;
  EXPECT_TRUE(isPlainName(std::string(64, 'a')));
  EXPECT_FALSE(isPlainName(std::string(65, 'a')));
}

TEST(KeepOwnNames, CallsNodesByNumberWhoseNameIsNotTheirsAlone) {
  std::vector<std::string> names = {"n0", "n1.example.org", "n1", "a b", "", "node-rank-0", "n6.example.org"};
  keepOwnNames(names);
  EXPECT_EQ(join(names, ","),
            "n0,node-rank-1,node-rank-2,node-rank-3,node-rank-4,node-rank-5,n6.example.org");
}

TEST(Quoted, HoldsNoQuoteAndNoControlCharacter) {
  EXPECT_EQ(quoted("say \"x\"\n", 100), "\"say 'x'\\n\"");
  EXPECT_EQ(quoted("", 100), "\"\"");
}

TEST(Split, IsTheReverseOfJoin) {
  EXPECT_EQ(split("a,b,,c", ','), (std::vector<std::string>{"a", "b", "", "c"}));
  EXPECT_EQ(split("", ','), std::vector<std::string>{""});
  EXPECT_EQ(join(split("x:y:", ':'), ":"), "x:y:");
  EXPECT_EQ(join({}, ", "), "");
}

TEST(Trim, TakesWhiteSpaceOffBothEnds) {
  EXPECT_EQ(trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(trim(" \n "), "");
  EXPECT_EQ(trim(""), "");
}

}  // namespace
}  // namespace muster
