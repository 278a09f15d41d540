// SPDX-License-Identifier: Apache-2.0
// Every exit code, by a real run.
#include <gtest/gtest.h>

#include <csignal>

#include "tests/e2e/muster.h"

namespace muster::testing {
namespace {

constexpr const char* kSteadyPlan = R"(schema = 1
name = "steady"
sku = "host"
backend = "host"

[[stage]]
name = "trial"
plugin = "fake-ok"
test = "run"
scope = "device"
ranks = 1
timeout = "20s"
)";

std::vector<std::string> run(const TempDir& dir, const std::string& planText) {
  const auto file = dir.write("plan.toml", planText);
  return std::vector<std::string>{"run", file.string(), "--out", (dir.path() / "run").string()} + withFakes();
}

TEST(ExitCode, IsZeroWhenAccepted) {
  TempDir dir;
  const auto result = runMuster(
      run(dir, std::string(kSteadyPlan) + "[[stage.expect]]\nmetric = \"fake-ok.value\"\nmin = \"1\"\n"));
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
}

TEST(ExitCode, IsOneWhenAnExpectationIsMissed) {
  TempDir dir;
  const auto result = runMuster(
      run(dir, std::string(kSteadyPlan) + "[[stage.expect]]\nmetric = \"fake-ok.value\"\nmin = \"1e9\"\n"));
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
}

TEST(ExitCode, IsTwoForABadPlanAndRunsNothing) {
  TempDir dir;
  const auto result = runMuster(run(dir, std::string(kSteadyPlan) + "tiemout = \"5s\"\n"));
  EXPECT_EQ(result.exitCode, 2) << result.out << result.err;
  EXPECT_NE(result.err.find("did you mean \"timeout\""), std::string::npos) << result.err;
  EXPECT_FALSE(std::filesystem::exists(dir.path() / "run" / "record.json"));
}

TEST(ExitCode, IsTwoForBadUsage) {
  EXPECT_EQ(runMuster({"run", "--no-such-option"}).exitCode, 2);
  EXPECT_EQ(runMuster({}).exitCode, 2);
}

TEST(ExitCode, IsThreeWhenAStageCrashes) {
  TempDir dir;
  const auto result = runMuster(run(dir, fakePlan("fake-crash")));
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  EXPECT_NE(result.out.find("SIGSEGV"), std::string::npos) << result.out;
}

TEST(ExitCode, IsThreeForUnjudgedOnlyUnderStrict) {
  TempDir dir;
  EXPECT_EQ(runMuster(run(dir, kSteadyPlan)).exitCode, 0);
  TempDir other;
  EXPECT_EQ(runMuster(run(other, kSteadyPlan) + std::vector<std::string>{"--strict"}).exitCode, 3);
}

TEST(ExitCode, IsThreeWithoutAGpuAndFiveWhenThatMayBeSkipped) {
  // The CUDA backend is not part of this build or the machine has no driver; with a GPU this test has nothing
  // to say.
  if (std::filesystem::exists("/dev/nvidia0")) GTEST_SKIP() << "this machine has an NVIDIA GPU";
  TempDir dir;
  const std::vector<std::string> arguments = {"run", plan("node-quick.toml"), "--out",
                                              (dir.path() / "a").string()};
  EXPECT_EQ(runMuster(arguments).exitCode, 3);
  const auto skipped =
      runMuster({"run", plan("node-quick.toml"), "--out", (dir.path() / "b").string(), "--no-gpu=skip"});
  EXPECT_EQ(skipped.exitCode, 5) << skipped.out << skipped.err;
  EXPECT_EQ(recordIn(dir.path() / "b").acceptance, Acceptance::kNoGpu);
}

TEST(ExitCode, IsFourWhenTheRecordCannotBeWritten) {
  TempDir dir;
  const auto disk = dir.path() / "disk";
  std::filesystem::create_directories(disk);
  if (runProcess({"mount", "-t", "tmpfs", "-o", "size=64k", "muster-test", disk.string()}).exitCode != 0)
    GTEST_SKIP() << "mounting a small disk is not permitted here";
  const auto file = dir.write("plan.toml", kSteadyPlan);
  const auto result = runMuster(
      std::vector<std::string>{"run", file.string(), "--out", (disk / "run").string()} + withFakes());
  runProcess({"umount", disk.string()});
  EXPECT_EQ(result.exitCode, 4) << result.out << result.err;
  EXPECT_NE(result.err.find("ENOSPC"), std::string::npos) << result.err;
}

TEST(ExitCode, Is130AfterCtrlCAndTheRunCanGoOn) {
  TempDir dir;
  const auto file = dir.write("plan.toml", fakePlan("fake-hang", "60s"));
  const auto out = dir.path() / "run";
  const std::string command = (distDir() / "bin/muster").string() + " run " + file.string() + " --out " +
                              out.string() + " --plugins " + withFakes()[1] + " & pid=$!; " +
                              "for i in $(seq 100); do [ -e " +
                              (out / "requests/trial.rank0.attempt1.json").string() +
                              " ] && break; sleep 0.05; done; sleep 0.2; kill -INT $pid; wait $pid";
  // Background jobs of a plain sh ignore SIGINT: -m gives them their own group and the default action.
  const auto result = runProcess({"bash", "-mc", command});
  EXPECT_EQ(result.exitCode, 130) << result.out << result.err;
  const Record record = recordIn(out);
  EXPECT_EQ(record.acceptance, Acceptance::kInterrupted);
  EXPECT_TRUE(record.accounting.balanced());
  for (const StageRecord& stage : record.stages)
    for (const Verdict& verdict : stage.verdicts)
      if (verdict.outcome == Outcome::kError) {
        EXPECT_EQ(verdict.device, "") << "the device is not at fault: " << verdict.detail;
        EXPECT_NE(verdict.detail.find("was stopped because the run was cancelled"), std::string::npos)
            << verdict.detail;
      }
  const auto resumed =
      runMuster({"run", "--resume", out.string(), "--plugins", withFakes()[1], "--set", "x.y=1"});
  EXPECT_EQ(resumed.exitCode, 2) << "overrides belong to a new run" << resumed.out << resumed.err;
}

}  // namespace
}  // namespace muster::testing
