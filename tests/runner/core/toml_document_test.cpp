// SPDX-License-Identifier: Apache-2.0
// TOML as JSON with places: what is kept, what is refused and where.
#include "runner/core/toml/toml_document.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(TomlDocument, KeepsValuesAndTheOrderOfKeys) {
  auto document = TomlDocument::parse("zeta = 1\nalpha = [true, 2.5]\n[beta]\nx = \"y\"\n", "f.toml");
  ASSERT_TRUE(document.ok()) << document.error().text();
  EXPECT_EQ(dumpJson(document->root()), R"({"zeta":1,"alpha":[true,2.5],"beta":{"x":"y"}})");
}

TEST(TomlDocument, KnowsThePlaceOfKeysAndListItems) {
  auto document = TomlDocument::parse("[[stage]]\nname = \"a\"\n[[stage]]\n  size = 8\n", "f.toml");
  ASSERT_TRUE(document.ok());
  EXPECT_EQ(document->place("/stage/1/size"), "f.toml:4:3");
  EXPECT_EQ(document->place("/stage/1"), "f.toml:3:1");
}

TEST(TomlDocument, PointsAtTheParentOfAnAbsentKey) {
  auto document = TomlDocument::parse("a = 1\n[b]\nc = 1\n", "f.toml");
  ASSERT_TRUE(document.ok());
  EXPECT_EQ(document->position("/b/none/deeper").line, 2);
  EXPECT_EQ(document->place("/none"), "f.toml:1:1");
}

TEST(TomlDocument, FindsKeysThatHoldSlashesAndDots) {
  auto document = TomlDocument::parse("\n\"a/b~c.d\" = 1\n", "f.toml");
  ASSERT_TRUE(document.ok());
  EXPECT_EQ(document->position(pointerTo("", "a/b~c.d")).line, 2);
}

TEST(TomlDocument, NamesThePlaceOfASyntaxError) {
  auto document = TomlDocument::parse("a = 1\nb = \n", "dir/f.toml");
  ASSERT_FALSE(document.ok());
  EXPECT_EQ(document.error().code, ErrorCode::kUsage);
  EXPECT_EQ(document.error().where.substr(0, 13), "dir/f.toml:2:");
}

TEST(TomlDocument, RefusesADuplicateKey) {
  EXPECT_FALSE(TomlDocument::parse("a = 1\na = 2\n", "f").ok());
}

TEST(TomlDocument, RefusesDates) {
  auto document = TomlDocument::parse("when = 2026-11-21\n", "f.toml");
  ASSERT_FALSE(document.ok());
  EXPECT_NE(document.error().message.find("date"), std::string::npos);
}

TEST(TomlDocument, RefusesInvalidUtf8) {
  EXPECT_FALSE(TomlDocument::parse("a = \"\xff\xfe\"\n", "f").ok());
}

TEST(TomlDocument, RefusesDeepLists) {
  std::string dotted = "k";
  for (int i = 0; i < 500000; ++i) dotted += ".k";
  for (const char quote : {'"', '\''})
    for (const int own : {0, 1, 2}) {  // a long text may end with quotes of its own
      const std::string open(3, quote), close(3 + static_cast<size_t>(own), quote);
      const auto read = TomlDocument::parse("a = [" + open + "b" + close + ", { " + dotted + " = 1 }]", "f");
      ASSERT_FALSE(read.ok());
      EXPECT_NE(read.error().text().find("a key has more than 16 parts"), std::string::npos) << close;
      EXPECT_TRUE(TomlDocument::parse("a = [" + open + "b" + close + ", { b.c = 1 }]", "f").ok()) << close;
    }
  std::string deep = "a = " + std::string(5000, '[') + std::string(5000, ']');
  EXPECT_FALSE(TomlDocument::parse(deep, "f").ok());
}

TEST(TomlDocument, RefusesLongDottedKeysWithTheirLine) {
  std::string key = "a";
  for (int i = 0; i < 100000; ++i) key += ".a";
  for (const std::string& text : {"\n" + key + " = 1\n", "\n[" + key + "]\n", "\nx = {" + key + " = 1}\n"}) {
    auto document = TomlDocument::parse(text, "f.toml");
    ASSERT_FALSE(document.ok());
    EXPECT_EQ(document.error().where, "f.toml:2:1");
  }
}

TEST(TomlDocument, LeavesDotsInTextsAndNumbersAlone) {
  std::string text =
      "a = \"1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16.17.18\"\n"
      "b = '''\n1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16.17.18\n'''\n"
      "c = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7]\n"
      "# a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t.u.v.w\n";
  auto document = TomlDocument::parse(text, "f.toml");
  EXPECT_TRUE(document.ok()) << document.error().text();
}

/// Each value is kept with its own place: one long key above many of them would need a thousand times the
/// text.
TEST(TomlDocument, BoundsTheKeysAboveManyValues) {
  std::string values = "0";
  for (int i = 0; i < 100'000; ++i) values += ",0";
  const auto problemOf = [&](const std::string& head) {
    const auto read = TomlDocument::parse(head + " = [" + values + "]", "f");
    return read.ok() ? "" : read.error().text();
  };
  EXPECT_EQ(problemOf("a"), "");
  EXPECT_NE(problemOf(std::string(200'000, 'a')).find("a key is longer than 1000 bytes"), std::string::npos);
  EXPECT_NE(problemOf(std::string(1'000, 'a')).find("too many values below long keys"), std::string::npos);
}

}  // namespace
}  // namespace muster
