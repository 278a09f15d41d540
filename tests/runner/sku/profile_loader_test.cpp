// SPDX-License-Identifier: Apache-2.0
// Profile files: what is read, and that every mistake is named at its place.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runner/core/toml/toml_table.h"
#include "runner/metrics/expectation_reader.h"
#include "runner/sku/profile.h"
#include "tests/support/process.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using testing::TempDir;

const char* const kGood = R"(schema = 1
name = "x100"
description = "a test"
device_count = 8
[match]
kind = "gpu"
pci_ids = ["10de:2330"]
names = ["X100"]
memory_min = "79 GB"
memory_max = "87 GB"
[peaks]
source = "datasheet"
"flops.bf16" = "989 TFLOP/s"
memory_bandwidth = "3.35 TB/s"
[facts]
architecture = "none"
[params."compute.gemm"]
size = 8192
[[expect]]
metric = "compute.gemm_throughput"
where = { dtype = "bf16" }
baseline = "730 TFLOP/s"
tolerance = "10%"
source = "measured"
remedy = "look"
)";

Catalog computeCatalog() {
  ParamSpec size;
  size.name = "size";
  size.type = ParamType::kInt;
  size.defaultValue = 2048;
  size.max = 65536;
  MetricSpec rate;
  rate.name = "gemm_throughput";
  rate.unit = "FLOP/s";
  rate.direction = Direction::kHigher;
  rate.labels = {"dtype"};
  TestSpec gemm;
  gemm.name = "gemm";
  gemm.params = {size};
  gemm.metrics = {rate};
  Catalog catalog;
  catalog.plugins["compute"].name = "compute";
  catalog.plugins["compute"].tests = {gemm};
  return catalog;
}

Result<Profile> load(const std::string& text) {
  static const Catalog catalog = computeCatalog();
  TempDir folder;
  return loadProfile(folder.write("p.toml", text), &catalog);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

void expectMistake(const std::string& from, const std::string& to, const std::string& part) {
  auto profile = load(replaced(kGood, from, to));
  ASSERT_FALSE(profile.ok()) << to;
  EXPECT_EQ(profile.error().code, ErrorCode::kUsage);
  EXPECT_THAT(profile.error().text(), HasSubstr(part));
}

TEST(ProfileLoader, ReadsEverything) {
  auto profile = load(kGood);
  ASSERT_TRUE(profile.ok()) << profile.error().text();
  EXPECT_EQ(profile->name, "x100");
  EXPECT_EQ(profile->deviceCount, 8);
  EXPECT_EQ(profile->match.pciIds, std::vector<std::string>{"10de:2330"});
  EXPECT_DOUBLE_EQ(profile->match.memoryMin, 79e9);
  EXPECT_DOUBLE_EQ(profile->peaks.at("flops.bf16"), 989e12);
  EXPECT_EQ(profile->facts.at("peaks_source"), "datasheet");
  EXPECT_EQ(profile->stageParams.at("compute.gemm")["size"], 8192);
  ASSERT_EQ(profile->expectations.size(), 1u);
  EXPECT_EQ(profile->expectations[0].origin, "profile x100");
  EXPECT_THAT(profile->expectations[0].at, HasSubstr("p.toml:19"));
  EXPECT_EQ(profile->sha256.size(), 64u);
  EXPECT_EQ(profile->text, kGood);
}

TEST(ProfileLoader, WantsAllThreeKeysOfAGpu) {
  expectMistake("pci_ids = [\"10de:2330\"]\n", "", "`pci_ids` is missing");
  expectMistake("names = [\"X100\"]\n", "", "`names` is missing");
  expectMistake("memory_max = \"87 GB\"\n", "", "`memory_max` is missing");
}

TEST(ProfileLoader, LetsACpuProfileMatchByKindAlone) {
  auto profile = load("schema = 1\nname = \"any\"\ndevice_count = 0\n[match]\nkind = \"cpu\"\n");
  EXPECT_TRUE(profile.ok()) << profile.error().text();
}

TEST(ProfileLoader, NamesTheNearestKey) {
  expectMistake("device_count", "device_cuont", "did you mean \"device_count\"?");
  expectMistake("pci_ids", "pci_id", "did you mean \"pci_ids\"?");
  expectMistake("baseline", "baselin", "did you mean \"baseline\"?");
  expectMistake("size = 8192", "sise = 8192", "no parameter \"sise\"; did you mean \"size\"?");
  expectMistake("compute.gemm\"]", "compute.gem\"]", "no plugin offers test \"compute.gem\"");
  expectMistake("gemm_throughput", "gemm_troughput", "did you mean \"compute.gemm_throughput\"?");
}

TEST(ProfileLoader, RefusesValuesThatMakeNoSense) {
  expectMistake("10de:2330", "0x2330", "`pci_ids` must be vendor:device in lower-case hexadecimal");
  expectMistake("\"87 GB\"", "\"7 GB\"", "`memory_max` is below");
  expectMistake("kind = \"gpu\"", "kind = \"tpu\"", "`kind` must be");
  expectMistake("schema = 1", "schema = 9", "schema 1, found 9");
  expectMistake("name = \"x100\"", "name = \"auto\"", "not \"auto\"");
  expectMistake("device_count = 8", "device_count = -1", "`device_count` must be");
  expectMistake("\"989 TFLOP/s\"", "\"989 GB/s\"", "flops.bf16");
  expectMistake("memory_bandwidth", "memory_speed", "`peaks` must be \"flops.<dtype>\" or a bandwidth");
  expectMistake("size = 8192", "size = 1000000", "parameter `size`");
  expectMistake("size = 8192", "size = \"big\"", "parameter `size`");
}

/// What `check --json` gives to editors.
TEST(ProfileLoader, TellsWhatItFoundAndWhatItRequires) {
  const TempDir folder;
  const auto parts = [&](const std::string& from, const std::string& to) {
    std::string text = kGood;
    text.replace(text.find(from), from.size(), to);
    std::vector<Complaint> found;
    EXPECT_FALSE(loadProfile(folder.write("p.toml", text), nullptr, {}, &found).ok()) << to;
    EXPECT_EQ(found.size(), 1u) << to;
    return found.empty() ? "" : found[0].mistake.found + " | " + found[0].mistake.required;
  };
  EXPECT_EQ(parts("\"x100\"", "\"auto\""), R"("auto" | letters, digits, '-', '_' and '.', and not "auto")");
  EXPECT_EQ(parts("\"87 GB\"", "\"7 GB\""), R"("7 GB" | at least "79 GB")");
  EXPECT_EQ(parts("10de:2330", "0x2330"),
            R"("0x2330" | vendor:device in lower-case hexadecimal, such as "10de:2330")");
  EXPECT_EQ(parts("memory_bandwidth", "memory_speed"), R"("memory_speed" | "flops.<dtype>" or a bandwidth)");
  EXPECT_EQ(parts("compute.gemm\"]", "gemm\"]"), R"("gemm" | of a test, [params."plugin.test"])");
  EXPECT_EQ(parts("size = 8192", "size = { a = 1 }"), R"({"a":1} | a value or a list of values)");
  EXPECT_EQ(parts("[[expect]]", "[expect]").substr(0, 1), "{");
}

TEST(ProfileLoader, WantsASourceForEveryFigure) {
  expectMistake("source = \"measured\"\n", "", "needs `source`");
  expectMistake("remedy = \"look\"\n", "", "needs `remedy`");
  expectMistake("source = \"datasheet\"\n", "", "`source` is missing");
}

TEST(ProfileLoader, PointsAtTheKeyOfAnExpectation) {
  expectMistake("tolerance = \"10%\"", "tolerance = \"110%\"", "p.toml:23:1: `tolerance` must be a share");
  expectMistake("dtype = \"bf16\"", "dtpye = \"bf16\"", "p.toml:21:11: metric");
}

TEST(ProfileLoader, TellsEveryMistakeInOneGo) {
  auto profile =
      load("schema = 1\nname = 5\n[match]\nkind = \"tpu\"\nfoo = 1\n[[expect]]\nmetric = \"a.b\"\n");
  ASSERT_FALSE(profile.ok());
  for (const char* part : {"`name` must be", "`device_count` is missing", "`kind` must be",
                           "unknown key \"foo\"", "no plugin declares metric \"a.b\"", "needs a limit"})
    EXPECT_THAT(profile.error().text(), HasSubstr(part));
}

TEST(ProfileLoader, BoundsWhatAllValuesOfLabelsComeTo) {
  std::string sizes, uses;
  for (int i = 0; i < 100; ++i) sizes += fmt::format("\"{}\",", i);
  for (int i = 0; i < 900; ++i) uses += "[[expect]]\nset = \"w\"\n";
  const auto big = [&](size_t bytes) {
    return std::string(kGood) +
           "[expectations.w]\nmetric = \"compute.gemm_throughput\"\nmin = 1\nwhere = { dtype = [" + sizes +
           "] }\nsource = \"" + std::string(bytes, 's') + "\"\nremedy = \"r\"\n";
  };
  const std::string limit = "expected with all before it at most 20000 expectations and 32 MiB";
  for (const size_t bytes : {1, 4000}) {
    const auto profile = load(big(bytes) + uses);
    ASSERT_FALSE(profile.ok());
    EXPECT_THAT(profile.error().text(), HasSubstr("p.toml:29:11: "));
    EXPECT_THAT(profile.error().text(), HasSubstr(limit));
  }
  // Those of a fleet have one budget.
  const std::string text = big(4000) + uses.substr(0, uses.size() / 900 * 40);
  ExpectationBudget budget;
  EXPECT_TRUE(parseProfile(text, "p.toml", nullptr, &budget).ok());
  EXPECT_TRUE(parseProfile(kGood, "p.toml", nullptr, &budget).ok());
  EXPECT_FALSE(parseProfile(text, "p.toml", nullptr, &budget).ok());
  EXPECT_TRUE(parseProfile(text, "p.toml", nullptr).ok());
}

TEST(ProfileLoader, RefusesAFileThatIsNotToml) {
  EXPECT_THAT(load("this is = = not toml").error().text(), HasSubstr("not valid TOML"));
  EXPECT_FALSE(loadProfile("/nonexistent.toml", nullptr).ok());
  EXPECT_FALSE(loadProfile("/tmp", nullptr).ok());
}

TEST(ProfileFolder, HoldsProfilesByName) {
  TempDir folder;
  folder.write("a.toml", kGood);
  folder.write("b.toml", replaced(kGood, "x100", "y100"));
  folder.write("notes.txt", "not a profile");
  auto profiles = loadProfiles(folder.path(), nullptr);
  ASSERT_TRUE(profiles.ok()) << profiles.error().text();
  EXPECT_EQ(profiles->size(), 2u);
  EXPECT_EQ(profiles->count("y100"), 1u);
}

TEST(ProfileFolder, NeverLeavesOutADamagedProfile) {
  TempDir folder;
  folder.write("a.toml", kGood);
  folder.write("b.toml", "schema = 1\n");
  auto profiles = loadProfiles(folder.path(), nullptr);
  ASSERT_FALSE(profiles.ok());
  EXPECT_THAT(profiles.error().text(), HasSubstr("b.toml"));
}

TEST(ProfileFolder, RefusesTwoProfilesOfOneName) {
  TempDir folder;
  folder.write("a.toml", kGood);
  folder.write("b.toml", kGood);
  EXPECT_THAT(loadProfiles(folder.path(), nullptr).error().text(), HasSubstr("defined twice"));
}

TEST(ProfileFolder, RefusesAMissingAndAnEmptyFolder) {
  TempDir folder;
  EXPECT_EQ(loadProfiles(folder.path() / "none", nullptr).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(loadProfiles(folder.path(), nullptr).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace muster
