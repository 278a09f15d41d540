// SPDX-License-Identifier: Apache-2.0
// Planted faults: when and to what they do something.
#include "kernels/sim/scenario/fault.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tests/kernels/sim/small_scenario.h"
#include "tests/support/process.h"

namespace muster::sim {
namespace {

FaultList faultsOf(const std::string& toml, int device = 0, int node = 0) {
  return {smallScenario(toml)->faults, device, node};
}

TEST(FaultList, TakesOnlyTheFaultsOfItsDeviceAndNode) {
  std::string toml = "[[fault]]\nkind = \"missing\"\ndevice = 1\nnode = 2\n";
  EXPECT_TRUE(faultsOf(toml, 1, 2).missing());
  EXPECT_FALSE(faultsOf(toml, 0, 2).missing());
  EXPECT_FALSE(faultsOf(toml, 1, 0).missing());
}

TEST(FaultList, SlowsOnlyTheNamedWorkInItsWindow) {
  FaultList faults = faultsOf(
      "[[fault]]\nkind = \"slow\"\ndevice = 0\nfactor = 0.5\nfrom = 10\nuntil = 20\nops = [\"gemm\"]\n");
  EXPECT_DOUBLE_EQ(faults.speed(Work::kGemm, 9.9), 1);
  EXPECT_DOUBLE_EQ(faults.speed(Work::kGemm, 10), 0.5);
  EXPECT_DOUBLE_EQ(faults.speed(Work::kGemm, 20), 1);
  EXPECT_DOUBLE_EQ(faults.speed(Work::kMemory, 15), 1);
}

TEST(FaultList, CountsThrottledTimeUpToNow) {
  FaultList faults =
      faultsOf("[[fault]]\nkind = \"throttle\"\ndevice = 0\nfactor = 0.7\nfrom = 10\nuntil = 20\n");
  EXPECT_DOUBLE_EQ(faults.throttled("thermal", 5), 0);
  EXPECT_DOUBLE_EQ(faults.throttled("thermal", 13), 3);
  EXPECT_DOUBLE_EQ(faults.throttled("thermal", 99), 10);
  EXPECT_DOUBLE_EQ(faults.throttled("power_brake", 99), 0);
  EXPECT_TRUE(faults.throttlesNow("thermal", 13));
  EXPECT_FALSE(faults.throttlesNow("thermal", 20));
}

TEST(FaultList, CorruptsEveryNthRun) {
  FaultList faults = faultsOf("[[fault]]\nkind = \"corruption\"\ndevice = 0\nevery = 3\nops = [\"gemm\"]\n");
  EXPECT_EQ(faults.corruption(Work::kGemm, 1, 0), nullptr);
  EXPECT_NE(faults.corruption(Work::kGemm, 3, 0), nullptr);
  EXPECT_NE(faults.corruption(Work::kGemm, 6, 0), nullptr);
  EXPECT_EQ(faults.corruption(Work::kPattern, 3, 0), nullptr);
}

TEST(FaultList, CorruptsInItsWindowOnly) {
  FaultList faults =
      faultsOf("[[fault]]\nkind = \"corruption\"\ndevice = 0\nfrom = 10\nuntil = 20\nops = [\"gemm\"]\n");
  EXPECT_EQ(faults.corruption(Work::kGemm, 1, 9.9), nullptr);
  EXPECT_NE(faults.corruption(Work::kGemm, 1, 10), nullptr);
  EXPECT_EQ(faults.corruption(Work::kGemm, 1, 20), nullptr);
}

TEST(FaultList, LosesADeviceThatGoesMissingLater) {
  FaultList faults = faultsOf("[[fault]]\nkind = \"missing\"\ndevice = 0\nat = 10\n");
  EXPECT_FALSE(faults.missing()) << "it is there at the start";
  EXPECT_TRUE(faults.strike(Work::kGemm, 9.9).ok());
  EXPECT_FALSE(faults.strike(Work::kGemm, 10).ok());
  EXPECT_TRUE(faults.lost(10));
}

/// Whether a process does nothing but wait: twice asleep, and no CPU time in between.
bool sleeps(pid_t pid) {
  const std::string file = "/proc/" + std::to_string(pid) + "/stat";
  const std::string before = testing::readWhole(file);
  usleep(10000);
  return before.find(") S ") != std::string::npos && testing::readWhole(file) == before;
}

/// Runs strike() in a child and returns how that ended; a child that has begun and then only waits is killed
/// with SIGKILL.
int waitStatusOfStrike(const FaultList& faults, Work work, double at) {
  pid_t child = fork();
  if (child == 0) {
    _exit(faults.strike(work, at).ok() ? 7 : 8);
  }
  int status = 0;
  do {
    if (waitpid(child, &status, WNOHANG) == child) return status;
  } while (!sleeps(child));
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return status;
}

TEST(FaultList, HangsUntilItIsKilled) {
  FaultList faults = faultsOf("[[fault]]\nkind = \"hang\"\ndevice = 0\nat = 5\nops = [\"gemm\"]\n");
  int early = waitStatusOfStrike(faults, Work::kGemm, 4);
  EXPECT_EQ(WEXITSTATUS(early), 7);
  int other = waitStatusOfStrike(faults, Work::kMemory, 6);
  EXPECT_EQ(WEXITSTATUS(other), 7);
  int hung = waitStatusOfStrike(faults, Work::kGemm, 6);
  EXPECT_TRUE(WIFSIGNALED(hung));
  EXPECT_EQ(WTERMSIG(hung), SIGKILL);
}

TEST(FaultList, CrashesWithASignal) {
  int status = waitStatusOfStrike(faultsOf("[[fault]]\nkind = \"crash\"\ndevice = 0\n"), Work::kGemm, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGABRT);
}

}  // namespace
}  // namespace muster::sim
