// SPDX-License-Identifier: Apache-2.0
// Foreign text in markup.
#include "runner/record/markup.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(Markup, EscapesEveryCharacterThatMarkupKnows) {
  EXPECT_EQ(escapeMarkup("<script>alert(1)</script>"), "&lt;script&gt;alert(1)&lt;/script&gt;");
  EXPECT_EQ(escapeMarkup("a & b \"c\" 'd'"), "a &amp; b &quot;c&quot; &#39;d&#39;");
}

TEST(Markup, KeepsTextOfAllLanguages) {
  EXPECT_EQ(escapeMarkup("héllo °C 日本 😀"), "héllo °C 日本 😀");
}

TEST(Markup, ShowsControlCharacters) {
  EXPECT_EQ(escapeMarkup("a\x1b[31mb\rc\x7f"), "a\\x1b[31mb\\x0dc\\x7f");
  EXPECT_EQ(escapeMarkup(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(escapeMarkup("line\n\ttwo"), "line\n\ttwo");
}

TEST(Markup, ShowsCharactersThatReorderText) {
  EXPECT_EQ(escapeMarkup("gpu\xe2\x80\xae"
                         "exe"),
            "gpu\\u202eexe");
  EXPECT_EQ(escapeMarkup("\xe2\x81\xa6x"), "\\u2066x");
  EXPECT_EQ(escapeMarkup("\u061Cx"), "\\u061cx");
  EXPECT_EQ(escapeAttribute("\u2028x"), "\\u2028x");
}

TEST(Markup, ShowsWhatNobodySees) {
  EXPECT_EQ(escapeMarkup("a\u00AD\u200B\uFEFF\U000E0041z"), "a\\xad\\u200b\\ufeff\\U000e0041z");
  EXPECT_EQ(escapeAttribute("\u009Bx"), "\\x9bx");
}

TEST(Markup, ReplacesInvalidUtf8AndNonCharacters) {
  EXPECT_EQ(escapeMarkup("a\xff"
                         "b"),
            "a\xef\xbf\xbd"
            "b");
  EXPECT_EQ(escapeMarkup("\xef\xbf\xbe"), "\\ufffe");
  EXPECT_EQ(escapeMarkup("cut \xe2\x80"), "cut \xef\xbf\xbd\xef\xbf\xbd");
}

TEST(Markup, KeepsLinesInAttributes) {
  EXPECT_EQ(escapeAttribute("a\nb\tc"), "a&#10;b&#9;c");
  EXPECT_EQ(escapeAttribute("\"><x y='"), "&quot;&gt;&lt;x y=&#39;");
}

}  // namespace
}  // namespace muster
