// SPDX-License-Identifier: Apache-2.0
// The matcher finds what a search for each value at each byte finds, in one pass.
#include "reports/redaction/matcher.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace muster {
namespace {

std::string randomText(std::mt19937& random, size_t size) {
  std::string text;
  while (text.size() < size) text += "ab-"[random() % 3];
  return text;
}

/// The same as Matcher::lengthsIn(), value by value.
std::vector<uint32_t> searchedIn(const std::string& text, const std::vector<std::string>& values) {
  const auto word = [&](size_t at) { return at < text.size() && text[at] != '-'; };
  std::vector<uint32_t> lengths(text.size());
  for (size_t at = 0; at < text.size(); ++at)
    for (const std::string& value : values) {
      const bool inWord = (at > 0 && word(at - 1)) || word(at + value.size());
      if (text.compare(at, value.size(), value) == 0 && (value.size() >= Matcher::kLong || !inWord))
        lengths[at] = std::max(lengths[at], static_cast<uint32_t>(value.size()));
    }
  return lengths;
}

TEST(Matcher, FindsTheLongestValueAtEachByte) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::string> values;
    while (values.size() < 1 + round % 20U) values.push_back(randomText(random, 1 + random() % 12));
    const std::string text = randomText(random, 200);
    EXPECT_EQ(Matcher({values.begin(), values.end()}).lengthsIn(text), searchedIn(text, values)) << text;
  }
}

TEST(Matcher, FindsNothingWithoutValues) {
  EXPECT_EQ(Matcher().lengthsIn("ab"), std::vector<uint32_t>(2));
  EXPECT_EQ(Matcher({""}).lengthsIn("ab"), std::vector<uint32_t>(2));
  EXPECT_TRUE(Matcher({"ab"}).lengthsIn("").empty());
}

/// A search for each length at each byte would compare 10^13 bytes.
TEST(Matcher, ReadsTheTextOnce) {
  std::vector<std::string> values;
  for (size_t size = 1; size <= 2000; ++size) values.push_back(std::string(size, 'a') + "b");
  const auto lengths = Matcher({values.begin(), values.end()}).lengthsIn(std::string(5'000'000, 'a') + "b");
  EXPECT_EQ(lengths[0], 0U);
  EXPECT_EQ(lengths[lengths.size() - 2001], 2001U);
  EXPECT_EQ(lengths[lengths.size() - 8], 8U);
}

}  // namespace
}  // namespace muster
