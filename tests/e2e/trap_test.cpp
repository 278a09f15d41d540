// SPDX-License-Identifier: Apache-2.0
// Traps in which tools of this kind let a sick machine pass: each is a whole run here that must not end 0.
#include <gtest/gtest.h>

#include "tests/e2e/muster.h"

namespace muster::testing {
namespace {

struct Trap {
  const char* name;
  const char* plugin;
  int kind;  ///< the fake's variant
  int exitCode;
};

std::ostream& operator<<(std::ostream& out, const Trap& trap) {
  return out << trap.name;
}

class FailOpenTrap : public ::testing::TestWithParam<Trap> {};

TEST_P(FailOpenTrap, DoesNotPass) {
  const Trap trap = GetParam();
  TempDir dir;
  const std::string extra = "[stage.params]\nkind = " + std::to_string(trap.kind) +
                            "\n[[stage.expect]]\nmetric = \"" + trap.plugin + ".value\"\nmin = \"1\"\n";
  const auto file = dir.write("plan.toml", fakePlan(trap.plugin, "4s", extra));
  const auto result = runMuster(
      std::vector<std::string>{"run", file.string(), "--out", (dir.path() / "run").string()} + withFakes());
  EXPECT_EQ(result.exitCode, trap.exitCode) << result.out << result.err;
}

INSTANTIATE_TEST_SUITE_P(
    All, FailOpenTrap,
    ::testing::Values(Trap{"OverallTimeout", "fake-hang", 0, 3},
                      Trap{"HangThatIgnoresTerm", "fake-hang-term", 0, 3}, Trap{"Crash", "fake-crash", 0, 3},
                      Trap{"ExitZeroInTheMiddle", "fake-exit-early", 0, 3},
                      Trap{"NotANumber", "fake-lies", 0, 3}, Trap{"Infinity", "fake-lies", 1, 3},
                      Trap{"WrongUnitAndNegative", "fake-lies", 2, 3}, Trap{"EmptyResult", "fake-lies", 3, 3},
                      Trap{"NoSamples", "fake-lies", 4, 3}, Trap{"UndeclaredMetric", "fake-lies", 5, 3},
                      Trap{"HiddenRefusal", "fake-lies", 13, 3}, Trap{"DoneTwice", "fake-raw", 0, 3},
                      Trap{"TornFrame", "fake-raw", 1, 3}, Trap{"EndlessFrame", "fake-raw", 2, 3},
                      Trap{"DeepFrame", "fake-raw", 5, 3}, Trap{"ThrownException", "fake-throws", 0, 3},
                      Trap{"InitError", "fake-fails", 1, 3}, Trap{"AllSkipped", "fake-fails", 2, 3},
                      Trap{"CrashAfterTheLastCase", "fake-end-badly", 0, 3},
                      Trap{"HangAfterTheLastCase", "fake-end-badly", 1, 3},
                      Trap{"ExitCodeAfterTheLastCase", "fake-end-badly", 7, 3}),
    [](const auto& info) { return info.param.name; });

TEST(FailOpenTrap, ThresholdZeroIsRefused) {
  TempDir dir;
  const auto file = dir.write(
      "plan.toml", fakePlan("fake-ok", "5s", "[[stage.expect]]\nmetric = \"fake-ok.value\"\nmin = \"0\"\n"));
  const auto result = runMuster(std::vector<std::string>{"check", file.string()} + withFakes());
  EXPECT_EQ(result.exitCode, 2) << result.out << result.err;
}

TEST(FailOpenTrap, AMissingReferenceIsRefused) {
  TempDir dir;
  const auto file = dir.write(
      "plan.toml", fakePlan("fake-ok", "5s", "[[stage.expect]]\nmetric = \"fake-ok.valeu\"\nmin = \"1\"\n"));
  const auto result = runMuster(std::vector<std::string>{"check", file.string()} + withFakes());
  EXPECT_EQ(result.exitCode, 2) << result.out << result.err;
  EXPECT_NE(result.err.find("fake-ok.value"), std::string::npos) << result.err;
}

TEST(FailOpenTrap, AnEmptyPlanIsRefused) {
  TempDir dir;
  const auto file = dir.write("plan.toml", "schema = 1\nname = \"empty\"\nbackend = \"host\"\n");
  EXPECT_EQ(runMuster({"check", file.string()}).exitCode, 2);
}

TEST(FailOpenTrap, RetryUntilPassIsFlaky) {
  TempDir dir;
  const auto file = dir.write(
      "plan.toml", fakePlan("fake-flaky", "20s",
                            "attempts = 3\n[[stage.expect]]\nmetric = \"fake-flaky.value\"\nmin = \"1\"\n"));
  const auto result = runMuster(
      std::vector<std::string>{"run", file.string(), "--out", (dir.path() / "run").string()} + withFakes());
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  EXPECT_FALSE(verdictsOf(recordIn(dir.path() / "run"), Outcome::kFlaky).empty());
}

TEST(FailOpenTrap, AStageBehindAFailedNeedIsCounted) {
  TempDir dir;
  const auto file =
      dir.write("plan.toml", fakePlan("fake-crash", "5s",
                                      "\n[[stage]]\nname = \"after\"\nplugin = \"fake-ok\"\ntest = "
                                      "\"run\"\nranks = 1\nneeds = [\"trial\"]\n"));
  const auto result = runMuster(
      std::vector<std::string>{"run", file.string(), "--out", (dir.path() / "run").string()} + withFakes());
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  const auto skipped = verdictsOf(recordIn(dir.path() / "run"), Outcome::kSkipped);
  ASSERT_EQ(skipped.size(), 1u);
  EXPECT_EQ(skipped.front().stage, "after");
}

TEST(FailOpenTrap, AWorldWritablePluginIsRefused) {
  TempDir dir;
  const auto folder = dir.path() / "plugins";
  std::filesystem::create_directories(folder);
  const auto library = folder / "fake-ok.so";
  std::filesystem::copy_file(buildDir() / "tests/fakes/fake-ok.so", library);
  std::filesystem::permissions(library, std::filesystem::perms::all);
  const auto file = dir.write("plan.toml", fakePlan("fake-ok"));
  const auto result = runMuster({"check", file.string(), "--plugins", folder.string()});
  EXPECT_EQ(result.exitCode, 2) << result.out << result.err;
  EXPECT_NE(result.err.find("writable"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace muster::testing
