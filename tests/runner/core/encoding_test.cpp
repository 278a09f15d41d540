// SPDX-License-Identifier: Apache-2.0
// Files that are no UTF-8 text: what they seem to be, and how to convert them.
#include "runner/core/encoding.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

namespace muster {
namespace {

const std::string kPlan = "schema = 1\nname = \"p\"  # a plan\n";

std::string wide(const std::string& text, size_t width, bool little) {
  std::string out;
  for (const char c : text) {
    std::string letter(width, '\0');
    letter[little ? 0 : width - 1] = c;
    out += letter;
  }
  return out;
}

std::string said(const std::string& text) {
  const auto fault = findEncodingFault(text, "plan.toml");
  return fault ? fmt::format("{}: {}", fault->offset, fault->message) : "fine";
}

TEST(Encoding, TakesUtf8) {
  EXPECT_EQ(said(""), "fine");
  EXPECT_EQ(said(kPlan), "fine");
  EXPECT_EQ(said("\xEF\xBB\xBF" + kPlan + "# \u00e9 \u4e2d \U0001F600\n"), "fine");
}

TEST(Encoding, NamesUtf16AndUtf32AndHowToConvertThem) {
  const auto advice = [](const char* encoding) {
    return fmt::format(
        "0: the file is encoded as {0}; expected UTF-8: convert it with iconv -f {0} -t UTF-8 plan.toml",
        encoding);
  };
  EXPECT_EQ(said("\xFF\xFE" + wide(kPlan, 2, true)), advice("UTF-16"));
  EXPECT_EQ(said("\xFE\xFF" + wide(kPlan, 2, false)), advice("UTF-16"));
  EXPECT_EQ(said(std::string("\xFF\xFE\0\0", 4) + wide(kPlan, 4, true)), advice("UTF-32"));
  EXPECT_EQ(said(wide(kPlan, 2, true)), advice("UTF-16LE"));
  EXPECT_EQ(said(wide(kPlan, 2, false)), advice("UTF-16BE"));
  EXPECT_EQ(said(wide(kPlan, 4, true)), advice("UTF-32LE"));
  EXPECT_EQ(said(wide(kPlan, 4, false)), advice("UTF-32BE"));
}

TEST(Encoding, TakesOtherBytesOfATextForLatin1) {
  EXPECT_EQ(said("# caf\xE9\n" + kPlan),
            "5: the byte 0xe9 is not valid UTF-8, the file seems to be encoded as Latin-1 or Windows-1252; "
            "expected UTF-8: convert it with iconv -f WINDOWS-1252 -t UTF-8 plan.toml");
  EXPECT_EQ(said(std::string("\x7F"
                             "ELF\x02\x01\xFF",
                             7)),
            "6: the byte 0xff is not valid UTF-8; expected a text file in UTF-8");
}

TEST(Encoding, PointsAtAStrayNulByte) {
  EXPECT_EQ(said(std::string("na\0me", 5)), "2: found a NUL byte; expected a text file in UTF-8");
}

TEST(Encoding, AnyPlanInAnotherEncodingIsNamedAsThat) {
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    std::string text = "schema = 1\n";
    for (size_t letters = random() % 200; letters > 0; --letters)
      text += static_cast<char>(' ' + random() % 95);
    EXPECT_NE(said(wide(text, 2, true)).find("encoded as UTF-16LE;"), std::string::npos) << text;
    EXPECT_NE(said("\xFE\xFF" + wide(text, 2, false)).find("encoded as UTF-16;"), std::string::npos) << text;
    std::string latin = text;
    latin.insert(random() % latin.size(), 1, static_cast<char>(0xC0 + random() % 64));
    latin += "\n";
    EXPECT_NE(said(latin).find("Latin-1"), std::string::npos) << latin;
  }
}

}  // namespace
}  // namespace muster
