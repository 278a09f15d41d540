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

/// What one reader asks for, in both forms.
void readMachine(TomlTable& t) {
  int count = 0;
  bool flag = false;
  double rate = 0;
  t.require("count");
  t.integer("count", {1, 8}, count);
  t.quantity("rate", "Hz", {0, 10}, rate);
  if (t.has("inner")) {
    TomlTable inner = t.table("inner");
    inner.flag("on", flag);
    inner.finish();
  }
  for (TomlTable& one : t.tables("fault"))
    one.variants("kind", {"slow", "dead"}, [&](const std::string& kind) {
      if (kind == "slow") one.require("factor");
      one.finish();
    });
  t.finish();
}

TEST(TomlTable, DescribesWhatItReads) {
  const Json schema = describeTable(readMachine);
  EXPECT_EQ(schema["properties"]["count"], (Json{{"type", "integer"}, {"minimum", 1}, {"maximum", 8}}));
  EXPECT_EQ(schema["properties"]["rate"]["anyOf"][0]["maximum"], 10);
  EXPECT_EQ(schema["properties"]["inner"]["properties"]["on"], (Json{{"type", "boolean"}}));
  EXPECT_EQ(schema["properties"]["inner"]["additionalProperties"], false);
  EXPECT_EQ(schema["required"], Json::array({"count"}));
  EXPECT_EQ(schema["additionalProperties"], false);
  const Json& fault = schema["properties"]["fault"]["items"]["allOf"];
  ASSERT_EQ(fault.size(), 3u);
  EXPECT_EQ(fault[0]["properties"]["kind"]["enum"], Json::array({"slow", "dead"}));
  EXPECT_EQ(fault[1]["if"]["properties"]["kind"]["const"], "slow");
  EXPECT_EQ(fault[1]["then"]["required"], Json::array({"factor"}));
  EXPECT_FALSE(fault[2]["then"]["properties"].contains("factor"));
}

TEST(TomlTable, ReadsAsItDescribes) {
  EXPECT_EQ(
      complaintsOf("count = 3\nrate = \"5 Hz\"\n[inner]\non = true\n[[fault]]\nkind = \"slow\"\nfactor = 1\n",
                   readMachine),
      "");
  EXPECT_THAT(complaintsOf("count = 3\n[[fault]]\nkind = \"dead\"\nfactor = 1\n", readMachine),
              HasSubstr("unknown key \"factor\""));
  EXPECT_THAT(complaintsOf("count = 3\n[[fault]]\nkind = \"slwo\"\n", readMachine),
              HasSubstr("`kind` must be one of slow, dead, found \"slwo\"; did you mean \"slow\"?"));
}

}  // namespace
}  // namespace muster
