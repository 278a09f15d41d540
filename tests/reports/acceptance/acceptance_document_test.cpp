// SPDX-License-Identifier: Apache-2.0
// acceptance.toml: every field is read, and every mistake has its place.
#include "reports/acceptance/acceptance_document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runner/system/files.h"
#include "tests/support/process.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr const char* kWhole = R"(schema = 1
[document]
number = "ATR-7"
revision = "2"
contract = "C-1"
site = "Hall 2"
scope = "one node"
exclusions = ["storage", "network"]
[parties]
supplier = "S"
customer = "C"
witness = "W"
[[ordered]]
part = "NVIDIA H100 80GB HBM3"
count = 8
[[ordered]]
part = "driver"
version = "580.95.05"
[[owner]]
serial = "123"
name = "field service"
due = "2026-12-05"
[[owner]]
name = "project lead"
)";

std::string refusal(const std::string& text) {
  const auto document = parseAcceptanceDocument(text, "a.toml");
  EXPECT_FALSE(document.ok());
  return document.ok() ? "" : document.error().text();
}

TEST(AcceptanceDocument, ReadsEveryField) {
  const auto read = parseAcceptanceDocument(kWhole, "a.toml");
  ASSERT_TRUE(read.ok()) << read.error().text();
  const std::vector<std::string> texts = {read->number,   read->revision, read->contract, read->site,
                                          read->supplier, read->customer, read->witness,  read->scope};
  EXPECT_THAT(texts, ::testing::ElementsAre("ATR-7", "2", "C-1", "Hall 2", "S", "C", "W", "one node"));
  EXPECT_THAT(read->exclusions, ::testing::ElementsAre("storage", "network"));
  ASSERT_EQ(read->ordered.size(), 2u);
  EXPECT_EQ(read->ordered[0].count, 8);
  EXPECT_EQ(read->ordered[1].version, "580.95.05");
}

TEST(AcceptanceDocument, GivesAFindingItsFirstMatchingOwner) {
  const auto read = parseAcceptanceDocument(kWhole, "a.toml");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->ownerOf({"n1", "gpu5", "123", "m"})->name, "field service");
  EXPECT_EQ(read->ownerOf({"n1", "gpu5", "124", "m"})->name, "project lead");
  EXPECT_EQ(AcceptanceDocument{}.ownerOf({"n1", "gpu5", "123", "m"}), nullptr);
}

TEST(AcceptanceDocument, NeedsNothingButItsSchema) {
  EXPECT_TRUE(parseAcceptanceDocument("schema = 1", "a.toml").ok());
  EXPECT_THAT(refusal(""), HasSubstr("schema"));
  EXPECT_THAT(refusal("schema = 2"),
              HasSubstr("a.toml:1:1: this Muster reads acceptance documents of schema 1, found 2"));
}

TEST(AcceptanceDocument, NamesThePlaceOfEachMistake) {
  const std::string text =
      refusal("schema = 1\n[document]\nnumbr = \"x\"\n[[ordered]]\npart = \"p\"\n[[owner]]\ndue = \"d\"\n");
  EXPECT_THAT(text, HasSubstr("a.toml:3:1"));
  EXPECT_THAT(text, HasSubstr("number"));
  EXPECT_THAT(text, HasSubstr("a.toml:4:1: an ordered part needs either `count` or `version`"));
  EXPECT_THAT(text, HasSubstr("a.toml:6:1"));
}

TEST(AcceptanceDocument, RefusesWhatDoesNotFitOnTheFirstPage) {
  EXPECT_THAT(refusal("schema = 1\n[document]\nsite = \"" + std::string(121, 'x') + "\""),
              HasSubstr("`site` has 121 bytes, at most 120 fit on the first page"));
  std::string many = "schema = 1\n";
  for (int i = 0; i < 9; ++i) many += "[[ordered]]\npart = \"p\"\ncount = 1\n";
  EXPECT_THAT(refusal(many), HasSubstr("9 entries of `ordered`, at most 8 are read"));
}

TEST(AcceptanceDocument, KeepsTheDigestOfItsFile) {
  const testing::TempDir folder;
  const auto path = folder.write("acceptance.toml", kWhole);
  const auto read = readAcceptanceDocument(path);
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(read->sha256, sha256Hex(kWhole));
  const auto missing = readAcceptanceDocument(folder.path() / "none.toml");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::kUsage);
  EXPECT_THAT(missing.error().text(), HasSubstr("--acceptance"));
}

}  // namespace
}  // namespace muster
