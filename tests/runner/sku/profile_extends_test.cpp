// SPDX-License-Identifier: Apache-2.0
// Profiles that extend others: what they replace, what they keep, where the base lies, hostile chains.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runner/core/toml/toml_table.h"
#include "runner/sku/profile.h"
#include "tests/support/process.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using testing::TempDir;

const char* const kBase = R"(schema = 1
name = "base"
device_count = 8
[match]
kind = "gpu"
pci_ids = ["10de:2330"]
names = ["X100"]
memory_min = "79 GB"
memory_max = "87 GB"
[facts]
links = "18"
power = "700 W"
[expectations.health]
source = "the set of the base"
remedy = "look"
[[expect]]
metric = "a.rate"
where = { op = "copy" }
baseline = 100
tolerance = 0.1
source = "measured"
remedy = "look"
[[expect]]
metric = "a.rate"
where = { op = "copy" }
cv_max = 0.1
source = "measured"
remedy = "look"
[[expect]]
metric = "a.rate"
where = { op = "read" }
min = 50
source = "measured"
remedy = "look"
)";

const char* const kSite = R"(schema = 1
extends = "base"
name = "site"
[match]
vendors = ["Amazon EC2"]
[facts]
power = "650 W"
[[expect]]
metric = "a.rate"
where = { op = "copy" }
min = 90
max = 110
source = "contract"
remedy = "ask"
[[expect]]
set = "health"
metric = "a.errors"
max = 0
)";

std::string linesOf(const Profile& profile) {
  std::string lines;
  for (const Expectation& e : profile.expectations) {
    lines += e.metric;
    for (const auto& [label, value] : e.where) lines += " " + label + "=" + value;
    lines += ": " + e.text() + " (" + e.source + "; " + e.origin + ")\n";
  }
  return lines;
}

TEST(ProfileExtends, ReplacesLimitsOfTheSameValueAndKeepsTheOthers) {
  TempDir folder;
  folder.write("base.toml", kBase);
  const auto site = loadProfile(folder.write("site.toml", kSite), nullptr);
  ASSERT_TRUE(site.ok()) << site.error().text();
  EXPECT_EQ(linesOf(*site),
            "a.rate op=copy: coefficient of variation at most 10% (measured; profile base)\n"
            "a.rate op=read: min 50 (measured; profile base)\n"
            "a.rate op=copy: min 90 (contract; profile site)\n"
            "a.rate op=copy: max 110 (contract; profile site)\n"
            "a.errors: max 0 (the set of the base; profile site)\n");
  EXPECT_EQ(site->base, "base");
  EXPECT_EQ(site->deviceCount, 8);
  EXPECT_EQ(site->match.vendors, std::vector<std::string>{"Amazon EC2"});
  EXPECT_EQ(site->match.pciIds, std::vector<std::string>{"10de:2330"});
  EXPECT_EQ(site->facts.at("power"), "650 W");
  EXPECT_EQ(site->facts.at("links"), "18");
  ASSERT_EQ(site->includes.size(), 1u);
  EXPECT_EQ(site->includes.at("extends/base.toml"),
            loadProfile(folder.path() / "base.toml", nullptr)->sha256);
}

TEST(ProfileExtends, TheFrozenTextNeedsNoFile) {
  TempDir folder;
  folder.write("common/limits.toml",
               "[[expect]]\nmetric = \"a.errors\"\nmax = 1\nsource = \"included\"\nremedy = \"look\"\n");
  folder.write("base.toml", "include = [\"common/limits.toml\"]\n" + std::string(kBase));
  const auto site = loadProfile(folder.write("site.toml", kSite), nullptr);
  ASSERT_TRUE(site.ok()) << site.error().text();
  const auto again = parseProfile(site->text, "/nonexistent/profile.toml", nullptr);
  ASSERT_TRUE(again.ok()) << again.error().text();
  EXPECT_EQ(linesOf(*again), linesOf(*site));
  EXPECT_EQ(again->sha256, site->sha256);
  EXPECT_THAT(parseProfile(kSite, folder.path() / "site.toml", nullptr).error().text(),
              HasSubstr("site.toml:2:1: extends: base is not part of this text"));
}

TEST(ProfileExtends, FindsTheBaseInOtherFolders) {
  TempDir shipped, own;
  shipped.write("base.toml", kBase);
  own.write("site.toml", kSite);
  const auto profiles = loadProfiles(own.path(), nullptr, {shipped.path()});
  ASSERT_TRUE(profiles.ok()) << profiles.error().text();
  EXPECT_EQ(profiles->at("site").base, "base");
  EXPECT_THAT(loadProfiles(own.path(), nullptr).error().text(),
              HasSubstr("extends: there is no profile \"base\""));
}

TEST(ProfileExtends, RefusesWhatIsNoChain) {
  TempDir folder;
  const auto problem = [&](const std::string& name, const std::string& text) {
    const auto profile = loadProfile(folder.write(name + ".toml", text), nullptr);
    return profile.ok() ? "" : profile.error().text();
  };
  EXPECT_THAT(problem("a", "extends = \"a\"\nname = \"a\"\n"),
              HasSubstr("the profile extends itself: a -> a"));
  folder.write("b.toml", "extends = \"a\"\nname = \"b\"\n");
  EXPECT_THAT(problem("a", "extends = \"b\"\nname = \"a\"\n"),
              HasSubstr("the profile extends itself: a -> b -> a"));
  EXPECT_THAT(problem("a", "extends = \"../b\"\n"), HasSubstr("expected the name of a profile"));
  EXPECT_THAT(problem("a", "extends = 3\n"), HasSubstr("found 3; expected the name of a profile"));
  EXPECT_THAT(problem("a", "extends = \"bb\"\n"), HasSubstr("there is no profile \"bb\"; expected one of b"));
  folder.write("base.toml", kBase);
  EXPECT_THAT(problem("a", "schema = 1\nextends = \"base\"\n"), HasSubstr("`name` is missing"));
  folder.write("other.toml", kBase);
  EXPECT_THAT(problem("a", "extends = \"other\"\n"), HasSubstr("other.toml holds the profile \"base\""));
  for (int i = 0; i < 12; ++i)
    folder.write("c" + std::to_string(i) + ".toml", "extends = \"c" + std::to_string(i + 1) + "\"\n");
  EXPECT_THAT(problem("a", "extends = \"c0\"\n"), HasSubstr("more than 8 levels deep"));
}

TEST(ProfileExtends, TellsWhatItFoundAndWhatItRequires) {
  TempDir folder;
  folder.write("base.toml", kBase);
  folder.write("other.toml", kBase);
  const auto parts = [&](const std::string& extends) {
    std::vector<Complaint> found;
    EXPECT_FALSE(
        loadProfile(folder.write("a.toml", "extends = " + extends + "\n"), nullptr, {}, &found).ok());
    EXPECT_EQ(found.size(), 1u) << extends;
    return found.empty() ? "" : found[0].mistake.found + " | " + found[0].mistake.required;
  };
  EXPECT_EQ(parts("3"), "3 | the name of a profile");
  EXPECT_EQ(parts("\"a\""), "a | a profile that is not based on this one");
  EXPECT_EQ(parts("\"other\""), "base | other");
  EXPECT_EQ(parts("\"bse\"").substr(0, 13), "bse | one of ");
}

TEST(ProfileExtends, AutoTakesTheMostSpecificMatch) {
  TempDir folder;
  folder.write("base.toml", kBase);
  folder.write("site.toml", kSite);
  const auto profiles = loadProfiles(folder.path(), nullptr);
  ASSERT_TRUE(profiles.ok()) << profiles.error().text();
  DeviceFacts device{"gpu0", "gpu", "X100", "10de:2330", 80e9, "Amazon EC2", "p5.48xlarge"};
  const auto chosen = [&] { return *chooseSku(*profiles, "auto", {device}); };
  ASSERT_NE(chosen().profile, nullptr);
  EXPECT_EQ(chosen().profile->name, "site");
  EXPECT_EQ(chosen().how, "matched by PCI id 10de:2330, name, memory and vendor Amazon EC2");
  device.vendor = "Supermicro";
  EXPECT_EQ(chosen().profile->name, "base");
  device.vendor.clear();
  EXPECT_EQ(chosen().profile->name, "base");
  const auto named = chooseSku(*profiles, "site", {device});
  ASSERT_EQ(named->problems.size(), 1u);
  EXPECT_THAT(named->problems[0], HasSubstr("vendor of the machine unknown in place of \"Amazon EC2\""));
}

TEST(ProfileExtends, ATieNamesBoth) {
  TempDir folder;
  folder.write("base.toml", kBase);
  folder.write("site.toml", kSite);
  folder.write("twin.toml", "extends = \"site\"\nname = \"twin\"\n");
  const auto profiles = loadProfiles(folder.path(), nullptr);
  ASSERT_TRUE(profiles.ok()) << profiles.error().text();
  const DeviceFacts device{"gpu0", "gpu", "X100", "10de:2330", 80e9, "Amazon EC2", ""};
  const auto choice = chooseSku(*profiles, "auto", {device});
  ASSERT_FALSE(choice.ok());
  EXPECT_THAT(choice.error().message,
              HasSubstr("matches several profiles equally well (site, twin); name one with `sku`"));
}

}  // namespace
}  // namespace muster
