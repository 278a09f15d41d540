// SPDX-License-Identifier: Apache-2.0
// Strict tables: typed values, bounds, unknown keys, all mistakes in one go.
#include "runner/core/toml/toml_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using ::testing::HasSubstr;

/// Reads `text` with `read` and returns the complaints.
template <typename F>
std::string complaintsOf(const std::string& text, F read) {
  auto document = TomlDocument::parse(text, "f.toml");
  if (!document.ok()) return "not TOML: " + document.error().text();
  Complaints complaints(*document);
  TomlTable root(*document, "", complaints);
  read(root);
  Status status = complaints.status();
  return status.ok() ? "" : status.error().message;
}

TEST(TomlTable, ReadsEachType) {
  std::string text, complaints;
  int count = 0;
  bool flag = false;
  double rate = 0;
  std::vector<std::string> names;
  complaints =
      complaintsOf("t = \"x\"\ni = 3\nf = true\nq = \"2 TFLOP/s\"\nn = [\"a\", \"b\"]\n", [&](TomlTable& t) {
        t.text("t", text);
        t.integer("i", {1, 5}, count);
        t.flag("f", flag);
        t.quantity("q", "FLOP/s", {}, rate);
        t.texts("n", names);
        t.finish();
      });
  EXPECT_EQ(complaints, "");
  EXPECT_EQ(text, "x");
  EXPECT_EQ(count, 3);
  EXPECT_TRUE(flag);
  EXPECT_DOUBLE_EQ(rate, 2e12);
  EXPECT_EQ(names.size(), 2u);
}

TEST(TomlTable, LeavesTheValueAloneWhenTheKeyIsMissing) {
  int count = 7;
  EXPECT_EQ(complaintsOf("", [&](TomlTable& t) { EXPECT_FALSE(t.integer("i", {}, count)); }), "");
  EXPECT_EQ(count, 7);
}

TEST(TomlTable, RefusesWrongTypesAndNamesTheKey) {
  std::string text;
  bool flag = false;
  std::string found = complaintsOf("t = 1\nf = \"yes\"\n", [&](TomlTable& t) {
    t.text("t", text);
    t.flag("f", flag);
  });
  EXPECT_THAT(found, HasSubstr("f.toml:1:1: `t` must be a text"));
  EXPECT_THAT(found, HasSubstr("f.toml:2:1: `f` must be true or false, found \"yes\""));
}

TEST(TomlTable, RefusesNumbersOutOfRangeAndNonFiniteOnes) {
  double value = 1;
  int count = 1;
  for (const char* text : {"q = -1\n", "q = nan\n", "q = inf\n", "q = \"9 GB\"\n", "q = true\n"}) {
    EXPECT_THAT(complaintsOf(text,
                             [&](TomlTable& t) {
                               t.quantity("q", "s", {0, 10}, value);
                             }),
                HasSubstr("`q`"))
        << text;
  }
  for (const char* text : {"i = 9\n", "i = 1.5\n", "i = 9223372036854775807\n"}) {
    EXPECT_THAT(complaintsOf(text,
                             [&](TomlTable& t) {
                               t.integer("i", {0, 8}, count);
                             }),
                HasSubstr("0 to 8"))
        << text;
  }
  EXPECT_THAT(complaintsOf("i = 9223372036854775807\n", [&](TomlTable& t) { t.integer("i", {}, count); }),
              HasSubstr("2147483647"));
  EXPECT_EQ(value, 1);
  EXPECT_EQ(count, 1);
}

TEST(TomlTable, NamesTheNearestKnownKey) {
  std::string text;
  std::string found = complaintsOf("descripton = \"x\"\n", [&](TomlTable& t) {
    t.text("description", text);
    t.finish();
  });
  EXPECT_THAT(found, HasSubstr("unknown key \"descripton\"; did you mean \"description\"?"));
}

TEST(TomlTable, ComplainsInFileOrder) {
  std::string found = complaintsOf("b = 1\na = 1\n", [](TomlTable& t) {
    t.complain("a", "second");
    t.complain("b", "first");
  });
  EXPECT_EQ(found, "f.toml:1:1: first\nf.toml:2:1: second");
}

TEST(TomlTable, RefusesAValueWhereATableIsExpected) {
  EXPECT_THAT(complaintsOf("a = 1\n", [](TomlTable& t) { t.table("a"); }),
              HasSubstr("expected a table, found 1"));
  EXPECT_THAT(complaintsOf("a = 1\n", [](TomlTable& t) { t.tables("a"); }), HasSubstr("[[a]]"));
  EXPECT_THAT(complaintsOf("a = [1]\n", [](TomlTable& t) { t.tables("a"); }), HasSubstr("expected a table"));
}

TEST(TomlTable, SaysWhichKeyIsMissing) {
  EXPECT_THAT(complaintsOf("", [](TomlTable& t) { t.require("name"); }), HasSubstr("`name` is missing"));
}

}  // namespace
}  // namespace muster
