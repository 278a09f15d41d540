// SPDX-License-Identifier: Apache-2.0
// Loading plan files: what is no plan at all is refused with its reason.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include "runner/system/files.h"
#include "tests/runner/plan/plan_support.h"
#include "tests/runner/plan/sample_catalog.h"
#include "tests/support/process.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;

/// The only diagnostic of a file that is no plan, without its path.
std::string refusalOf(const fs::path& path) {
  const PlanOutcome outcome = loadPlan(path, sampleCatalog(), {});
  EXPECT_FALSE(outcome.plan.has_value()) << path;
  EXPECT_EQ(outcome.diagnostics.size(), 1u) << problemsOf(outcome);
  const std::string text = problemsOf(outcome);
  EXPECT_TRUE(text.starts_with(path.string())) << text;
  return text.substr(std::min(text.size(), path.string().size()));
}

TEST(Plan, LoadsAFileAndKeepsItsText) {
  const TempDir folder;
  const fs::path path = folder.write("good.toml", gemmPlan(""));
  const PlanOutcome outcome = loadPlan(path, sampleCatalog(), {});
  const Plan plan = planOf(outcome);
  EXPECT_EQ(plan.path, path);
  EXPECT_EQ(plan.text, gemmPlan(""));
  EXPECT_EQ(plan.sha256, sha256Hex(gemmPlan("")));
}

TEST(Plan, NamesTheNearestFileWhenOneIsMissing) {
  const TempDir folder;
  folder.write("quickstart.toml", gemmPlan(""));
  EXPECT_EQ(refusalOf(folder.path() / "quikstart.toml"),
            ": cannot read it: No such file or directory (ENOENT); did you mean \"quickstart.toml\"?\n");
}

TEST(Plan, SaysWhereALinkToNowhereLeads) {
  const TempDir folder;
  fs::create_symlink("gone/plan.toml", folder.path() / "link.toml");
  EXPECT_EQ(refusalOf(folder.path() / "link.toml"),
            ": cannot read it: No such file or directory (ENOENT); it is a link to gone/plan.toml\n");
}

TEST(Plan, WantsAName) {
  EXPECT_EQ(refusalOf(""), "plan: found an empty name; expected a plan, .toml or .lua\n");
}

TEST(Plan, NamesTheNearestSkuProfileOnATypo) {
  PlanOptions options;
  options.skus = {"h100-sxm5-80gb", "h200-sxm"};
  std::string text = gemmPlan("");
  EXPECT_TRUE(parsePlan(text + "", "plan.toml", sampleCatalog(), {}).plan.has_value());
  text.replace(text.find('\n'), 1, "\nsku = \"h200-sxn\"\n");
  EXPECT_EQ(problemsOf(parsePlan(text, "plan.toml", sampleCatalog(), options)),
            "plan.toml:2:1: sku: no SKU profile \"h200-sxn\"; did you mean \"h200-sxm\"?; available: auto, "
            "h100-sxm5-80gb, h200-sxm; --skus DIR adds more\n");
  options.overrides = {{"sku", "auto"}};
  EXPECT_EQ(problemsOf(parsePlan(text, "plan.toml", sampleCatalog(), options)), "");
}

TEST(Plan, RefusesWhatIsNotARegularFile) {
  const TempDir folder;
  fs::create_directory(folder.path() / "folder.toml");
  EXPECT_EQ(refusalOf(folder.path() / "folder.toml"), ": is a folder; expected a regular file\n");
  ASSERT_EQ(mkfifo((folder.path() / "pipe.toml").c_str(), 0600), 0);
  EXPECT_EQ(refusalOf(folder.path() / "pipe.toml"), ": is a pipe; expected a regular file\n");
}

TEST(Plan, RefusesAnUnreadableFile) {
  if (geteuid() == 0) {
    // Root reads everything; a loop of links is unreadable for root too.
    const TempDir folder;
    fs::create_symlink("loop.toml", folder.path() / "loop.toml");
    EXPECT_NE(refusalOf(folder.path() / "loop.toml").find("(ELOOP)"), std::string::npos);
    return;
  }
  const TempDir folder;
  const fs::path path = folder.write("secret.toml", gemmPlan(""));
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  EXPECT_EQ(refusalOf(path), ": cannot read it: Permission denied (EACCES)\n");
}

TEST(Plan, RefusesAGigabyteWithoutReadingIt) {
  const TempDir folder;
  const fs::path path = folder.write("huge.toml", "");
  fs::resize_file(path, uint64_t{1} << 30);
  EXPECT_EQ(refusalOf(path), ": is larger than 4 MiB, which is the maximum\n");
}

TEST(Plan, RefusesABinaryAtItsFirstOddByte) {
  const TempDir folder;
  EXPECT_EQ(refusalOf(folder.write("nul.toml", std::string("schema = 1\nna\0me", 16))),
            ":2:3: found a NUL byte; expected a text file in UTF-8\n");
  EXPECT_THAT(refusalOf(folder.write("latin.lua", "x = '\xE9'")),
              ::testing::HasSubstr(
                  ":1:6: the byte 0xe9 is not valid UTF-8, the file seems to be encoded as Latin-1"));
  EXPECT_THAT(refusalOf(folder.write("wide.toml", std::string("\xFF\xFEs\0c\0", 6))),
              ::testing::HasSubstr(
                  ":1:1: the file is encoded as UTF-16; expected UTF-8: convert it with iconv -f UTF-16"));
  EXPECT_EQ(refusalOf(folder.write("elf.toml", readWhole("/proc/self/exe").substr(0, 4096))).find(":1:"), 0u);
}

TEST(Plan, RefusesAnUnknownExtension) {
  const TempDir folder;
  EXPECT_EQ(refusalOf(folder.write("plan.yaml", gemmPlan(""))),
            ": found the extension \".yaml\"; expected a plan, .toml or .lua\n");
  EXPECT_EQ(refusalOf(folder.write("plan", gemmPlan(""))),
            ": found the extension \"\"; expected a plan, .toml or .lua\n");
}

TEST(Plan, OfTheSameContentIsTheSameInBothLanguages) {
  const Plan toml = planOf(parseToml(R"(schema = 1
name = "node"
description = "both"
sku = "h200-sxm"
backend = "host"
allow_unknown_sku = true
[[stage]]
name = "health"
plugin = "env"
test = "health"
[[stage.expect]]
metric = "env.clock_source"
one_of = ["tsc", "kvm-clock"]
[[stage.expect]]
metric = "env.in_container"
equals = false
severity = "warn"
[[stage]]
name = "gemm"
plugin = "compute"
test = "gemm"
needs = ["health"]
timeout = "90s"
repeat = 3
attempts = 2
allow_flaky = true
[stage.params]
min_time = "500ms"
scale = 1.5
[stage.matrix]
size = [1024, 2048]
dtype = ["bf16", "f32"]
[[stage.expect]]
metric = "compute.gemm_throughput"
where = { dtype = "bf16", size = 2048 }
min = "650 TFLOP/s"
cv_max = "2%"
remedy = "Check clocks"
[[stage.expect]]
metric = "compute.gemm_wrong_elements"
max = 0
)"));
  const Plan lua = planOf(parseLua(R"(
local gemm = stage{
  name = "gemm", plugin = "compute", test = "gemm", needs = { "health" },
  timeout = "90s", ["repeat"] = 3, attempts = 2, allow_flaky = true,
  params = { min_time = "500ms", scale = 3 / 2 },
  matrix = { dtype = { "bf16", "f32" }, size = {} },
  expect = {
    { metric = "compute.gemm_throughput", where = { dtype = "bf16", size = 2048 }, min = "650 TFLOP/s",
      cv_max = "2%", remedy = "Check clocks" },
    expect{ metric = "compute.gemm_wrong_elements", max = 0 },
  },
}
for exponent = 10, 11 do table.insert(gemm.matrix.size, 1 << exponent) end
return plan{
  schema = 1, name = "node", description = "both", sku = "h200-sxm", backend = "host", allow_unknown_sku = true,
  stage{
    name = "health", plugin = "env", test = "health",
    expect{ metric = "env.clock_source", one_of = { "tsc", "kvm-clock" } },
    expect{ metric = "env.in_container", equals = false, severity = "warn" },
  },
  gemm,
}
)"));
  EXPECT_EQ(toml.stages.size(), 2u);
  EXPECT_EQ(modelOf(toml), modelOf(lua));
}

}  // namespace
}  // namespace muster::testing
