// SPDX-License-Identifier: Apache-2.0
// Traps in which tools of this kind let a sick machine pass: each is a whole run here that must not end 0.
#include <gtest/gtest.h>

#include "tests/e2e/muster.h"

namespace muster::testing {
namespace {

struct Trap {
  const char* name;
  const char* plugin;
  const char* extra;  ///< appended to the stage
  int exitCode;
};

std::ostream& operator<<(std::ostream& out, const Trap& trap) { return out << trap.name; }

constexpr const char* kWantsValue = "[[stage.expect]]\nmetric = \"@.value\"\nmin = \"1\"\n";

class FailOpenTrap : public ::testing::TestWithParam<Trap> {};

TEST_P(FailOpenTrap, DoesNotPass) {
  const Trap trap = GetParam();
  TempDir dir;
  std::string extra = trap.extra;
  for (size_t at; (at = extra.find('@')) != std::string::npos;) extra.replace(at, 1, trap.plugin);
  const auto file = dir.write("plan.toml", fakePlan(trap.plugin, "4s", extra));
  const auto result = runMuster(
      std::vector<std::string>{"run", file.string(), "--out", (dir.path() / "run").string()} + withFakes());
  EXPECT_EQ(result.exitCode, trap.exitCode) << result.out << result.err;
}

INSTANTIATE_TEST_SUITE_P(
    All, FailOpenTrap,
    ::testing::Values(Trap{"OverallTimeout", "fake-hang", kWantsValue, 3},
                      Trap{"HangThatIgnoresTerm", "fake-hang-ignore-term", kWantsValue, 3},
                      Trap{"Crash", "fake-crash", kWantsValue, 3},
                      Trap{"ExitInTheMiddle", "fake-exit", kWantsValue, 3},
                      Trap{"EmptyResult", "fake-no-measurement", kWantsValue, 3},
                      Trap{"NotANumber", "fake-nan", kWantsValue, 3},
                      Trap{"NegativeTime", "fake-negative", "[[stage.expect]]\nmetric = \"@.value\"\nmax = \"5s\"\n", 3},
                      Trap{"DoneTwice", "fake-done-twice", kWantsValue, 3},
                      Trap{"TornFrame", "fake-torn-frame", kWantsValue, 3},
                      Trap{"EndlessFrame", "fake-endless-frame", kWantsValue, 3},
                      Trap{"ThrownException", "fake-throw", kWantsValue, 3}),
    [](const auto& info) { return info.param.name; });

TEST(FailOpenTrap, ThresholdZeroIsRefused) {
  TempDir dir;
  const auto file = dir.write("plan.toml", fakePlan("fake-steady", "5s", "[[stage.expect]]\nmetric = \"fake-steady.value\"\nmin = \"0\"\n"));
  const auto result = runMuster(std::vector<std::string>{"check", file.string()} + withFakes());
  EXPECT_EQ(result.exitCode, 2) << result.out << result.err;
}

TEST(FailOpenTrap, AMissingReferenceIsRefused) {
  TempDir dir;
  const auto file = dir.write("plan.toml", fakePlan("fake-steady", "5s", "[[stage.expect]]\nmetric = \"fake-steady.valeu\"\nmin = \"1\"\n"));
  const auto result = runMuster(std::vector<std::string>{"check", file.string()} + withFakes());
  EXPECT_EQ(result.exitCode, 2) << result.out << result.err;
  EXPECT_NE(result.err.find("fake-steady.value"), std::string::npos) << result.err;
}

TEST(FailOpenTrap, AnEmptyPlanIsRefused) {
  TempDir dir;
  const auto file = dir.write("plan.toml", "schema = 1\nname = \"empty\"\nbackend = \"host\"\n");
  EXPECT_EQ(runMuster({"check", file.string()}).exitCode, 2);
}

TEST(FailOpenTrap, RetryUntilPassIsFlaky) {
  TempDir dir;
  const auto file = dir.write("plan.toml", fakePlan("fake-flaky", "20s", "attempts = 3\n[[stage.expect]]\nmetric = \"fake-flaky.value\"\nmin = \"1\"\n"));
  const auto result = runMuster(
      std::vector<std::string>{"run", file.string(), "--out", (dir.path() / "run").string()} + withFakes());
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  EXPECT_FALSE(verdictsOf(recordIn(dir.path() / "run"), Outcome::kFlaky).empty());
}

TEST(FailOpenTrap, AllSkippedIsNoSuccess) {
  TempDir dir;
  const auto file = dir.write("plan.toml", fakePlan("fake-unsupported"));
  const auto result = runMuster(
      std::vector<std::string>{"run", file.string(), "--out", (dir.path() / "run").string()} + withFakes());
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
}

TEST(FailOpenTrap, AStageBehindAFailedNeedIsCounted) {
  TempDir dir;
  const auto file = dir.write(
      "plan.toml", fakePlan("fake-crash", "5s", "\n[[stage]]\nname = \"after\"\nplugin = \"fake-steady\"\ntest = \"run\"\nranks = 1\nneeds = [\"trial\"]\n"));
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
  const auto library = folder / "fake-steady.so";
  std::filesystem::copy_file(buildDir() / "tests/fakes/fake-steady.so", library);
  std::filesystem::permissions(library, std::filesystem::perms::all);
  const auto file = dir.write("plan.toml", fakePlan("fake-steady"));
  const auto result = runMuster({"check", file.string(), "--plugins", folder.string()});
  EXPECT_EQ(result.exitCode, 2) << result.out << result.err;
  EXPECT_NE(result.err.find("writable"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace muster::testing
