// SPDX-License-Identifier: Apache-2.0
// A plugin that breaks the ABI's rules costs its own stage, and no other.
#include <gtest/gtest.h>

#include "tests/e2e/muster.h"

namespace muster::testing {
namespace {

/// A stage of tests/fakes/disobey.c in one of its kinds.
std::string disobedient(const std::string& name, int kind) {
  return "\n[[stage]]\nname = \"" + name +
         "\"\nplugin = \"fake-disobey\"\ntest = \"run\"\ntimeout = \"20s\"\n[stage.params]\nkind = " +
         std::to_string(kind) + "\n[[stage.expect]]\nmetric = \"fake-disobey.value\"\nmin = 1\n";
}

TEST(PluginRules, ParametersAreListedWithTheirRange) {
  const auto result = runMuster(std::vector<std::string>{"plugins", "fake-disobey"} + withFakes());
  EXPECT_EQ(result.exitCode, 0) << result.err;
  EXPECT_NE(result.out.find("which variant, or how much of it (from 0 to 100000000)"), std::string::npos)
      << result.out;
}

TEST(PluginRules, AnErrorThatWasToldIsNeverAPass) {
  const TempDir dir;
  const auto file =
      dir.write("plan.toml", "schema = 1\nname = \"fake\"\nsku = \"host\"\nbackend = \"host\"\n" +
                                 disobedient("tells", 0));
  const auto result = runMuster(
      std::vector<std::string>{"run", file.string(), "--out", (dir.path() / "run").string()} + withFakes());
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  EXPECT_NE(result.out.find("run() returned MUSTER_OK, but had called error(): the disk was full"),
            std::string::npos)
      << result.out;
}

TEST(PluginRules, AWrongVirtualTimeCostsNoLaterStage) {
  const TempDir dir;
  const std::string text = "schema = 1\nname = \"fake\"\n" + disobedient("wrong", 7) +
                           "\n[[stage]]\nname = \"copy\"\nplugin = \"memory\"\ntest = \"bandwidth\"\n";
  const auto result = runMuster(std::vector<std::string>{"run", dir.write("plan.toml", text).string(),
                                                         "--out", (dir.path() / "run").string(), "--simulate",
                                                         scenario("h100x8-healthy")} +
                                withFakes());
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  const Record record = recordIn(dir.path() / "run");
  EXPECT_EQ(stageOf(record, "wrong").outcome, Outcome::kError);
  EXPECT_EQ(stageOf(record, "wrong").duration, 20);
  EXPECT_NE(result.out.find("of simulated time; the timeout is 20s"), std::string::npos) << result.out;
  EXPECT_EQ(stageOf(record, "copy").outcome, Outcome::kPass) << result.out;
  EXPECT_GT(stageOf(record, "copy").duration, 0);
}

}  // namespace
}  // namespace muster::testing
