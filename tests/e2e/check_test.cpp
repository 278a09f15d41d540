// SPDX-License-Identifier: Apache-2.0
// `muster check --json`: what editors and scripts read of a plan's validation.
#include <gtest/gtest.h>

#include "runner/core/json.h"
#include "tests/e2e/muster.h"

namespace muster::testing {
namespace {

/// What `muster check --json ARGS` printed; `exitCode` is what both forms of the command must return.
Json checked(const std::vector<std::string>& arguments, int exitCode, const ProcessOptions& options = {}) {
  const auto result = runMuster(std::vector<std::string>{"check", "--json"} + arguments, options);
  EXPECT_EQ(result.exitCode, exitCode) << result.out << result.err;
  EXPECT_EQ(runMuster(std::vector<std::string>{"check"} + arguments, options).exitCode, exitCode);
  const auto json = parseJson(result.out);
  EXPECT_TRUE(json.ok()) << result.out;
  if (!json.ok()) return Json::object();
  EXPECT_EQ((*json)["valid"], exitCode == 0);
  EXPECT_EQ((*json)["errors"].empty(), exitCode == 0) << result.out;
  return *json;
}

std::string hostPlan(const std::string& lines) {
  return "schema = 1\nname = \"p\"\nbackend = \"host\"\n[[stage]]\nname = \"gemm\"\ntest = "
         "\"compute.gemm\"\n" +
         lines;
}

TEST(Check, AValidPlanIsOneObjectWithoutErrors) {
  const Json result = checked({plan("quickstart.toml"), plan("gemm-sweep.lua")}, 0);
  ASSERT_EQ(result["files"].size(), 2u);
  EXPECT_EQ(result["files"][0]["file"], plan("quickstart.toml"));
  EXPECT_EQ(result["files"][0]["valid"], true);
  EXPECT_EQ(result["files"][0]["plan"]["name"], "quickstart");
  EXPECT_GE(result["files"][0]["plan"]["stages"].get<int>(), 3);
}

TEST(Check, AnErrorHasItsLocationAndPartsAsData) {
  const TempDir dir;
  const auto file =
      dir.write("p.toml", hostPlan("repeat = 0\ntiemout = \"5m\"\n[stage.params]\nsize = -3\n"));
  const Json result = checked({file.string()}, 2);
  ASSERT_EQ(result["errors"].size(), 3u) << result;
  EXPECT_EQ(result["errors"][0],
            (Json{{"file", file.string()},
                  {"line", 7},
                  {"column", 1},
                  {"message", "stage \"gemm\": repeat: found 0; expected a whole number from 1 to 1000"},
                  {"found", "0"},
                  {"required", "a whole number from 1 to 1000"},
                  {"plan", file.string()}}));
  EXPECT_EQ(result["errors"][1]["suggestion"], "timeout");
  EXPECT_EQ(result["errors"][1]["line"], 8);
  EXPECT_EQ(result["errors"][2]["found"], "-3");
  EXPECT_EQ(result["files"][0], (Json{{"file", file.string()}, {"valid", false}}));
}

TEST(Check, AnErrorInAnIncludedFileNamesThatFile) {
  const TempDir dir;
  const auto included = dir.write("site.toml", "[expectations.mine]\nmetrik = \"a.b\"\n");
  const auto file = dir.write("p.toml", "include = [\"site.toml\"]\n" + hostPlan(""));
  const Json result = checked({file.string()}, 2);
  EXPECT_EQ(result["errors"][0]["file"], included.string());
  EXPECT_EQ(result["errors"][0]["suggestion"], "metric");
  EXPECT_EQ(result["errors"][0]["plan"], file.string());
}

TEST(Check, BadInputOfAnyKindIsOneObjectToo) {
  const TempDir dir;
  const std::string syntax = dir.write("syntax.toml", "schema = 1\nname = \n").string();
  const std::string broken = dir.write("broken.lua", "return {\n  schema = nil + 1\n}\n").string();
  const std::string loop = dir.write("loop.lua", "while true do end\nreturn {}\n").string();
  const std::string binary = dir.write("b.toml", std::string("\xff\x00\x1b[31m", 7)).string();
  const std::string absent = (dir.path() / "nowhere.toml").string();
  for (const std::string& file :
       {syntax, broken, loop, binary, absent, dir.path().string(), std::string("x\"\n.toml")}) {
    const Json result = checked({file, plan("quickstart.toml")}, 2);
    ASSERT_EQ(result["errors"].size(), 1u) << file;
    EXPECT_EQ(result["errors"][0]["plan"], file);
    EXPECT_FALSE(result["errors"][0]["message"].get<std::string>().empty());
    ASSERT_EQ(result["files"].size(), 2u);
    EXPECT_EQ(result["files"][1]["valid"], true) << "one bad file hides another's result: " << file;
  }
  EXPECT_EQ(checked({syntax}, 2)["errors"][0]["line"], 2);
  EXPECT_EQ(checked({broken}, 2)["errors"][0]["line"], 2);
}

TEST(Check, AnErrorThatStopsTheCommandIsAnErrorOfTheObject) {
  const TempDir dir;
  dir.write("skus/bad.toml", "schema = 1\nname = \"bad\"\ndevice_count = -1\nwrong = 1\n");
  const Json profile = checked({plan("quickstart.toml"), "--skus", (dir.path() / "skus").string()}, 2);
  ASSERT_GE(profile["errors"].size(), 2u) << profile;
  EXPECT_EQ(profile["errors"][1]["file"], (dir.path() / "skus/bad.toml").string()) << profile;
  EXPECT_TRUE(profile["errors"][1]["line"].is_number());
  // Their parts are those of a plan's errors.
  dir.write("skus/bad.toml",
            "schema = 1\nname = \"bad\"\ndevice_count = \"eight\"\n[match]\nkind = \"gpus\"\n"
            "[[expect]]\nmetric = \"compute.gemm_throughpt\"\nmin = 1\nsource = \"x\"\n"
            "[params.\"compute.gemm\"]\nsize = \"big\"\nsice = 1\n");
  const Json parts = checked({plan("quickstart.toml"), "--skus", (dir.path() / "skus").string()}, 2);
  const auto partOf = [&](int line, const char* key) {
    for (const Json& error : parts["errors"])
      if (error["line"] == line && error.contains(key)) return error[key].get<std::string>();
    return std::string();
  };
  EXPECT_EQ(partOf(3, "found"), "\"eight\"") << parts;
  EXPECT_EQ(partOf(3, "required"), "a whole number, 0 to 1024");
  EXPECT_EQ(partOf(5, "suggestion"), "gpu");
  EXPECT_EQ(partOf(7, "suggestion"), "compute.gemm_throughput");
  EXPECT_EQ(partOf(11, "found"), "\"big\"");
  EXPECT_EQ(partOf(11, "required"), "a whole number from 1 to 131072");
  EXPECT_EQ(partOf(12, "suggestion"), "size");
  EXPECT_EQ(checked({plan("quickstart.toml"), "--set", "nothing"}, 2)["files"], Json::array());
}

TEST(Check, ReadsStandardInput) {
  ProcessOptions options;
  options.input = hostPlan("repeat = \"x\"\n");
  const Json result = checked({"-"}, 2, options);
  EXPECT_EQ(result["errors"][0]["file"], "stdin.toml");
  EXPECT_EQ(result["files"][0]["file"], "standard input");
}

}  // namespace
}  // namespace muster::testing
