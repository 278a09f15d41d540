// SPDX-License-Identifier: Apache-2.0
// Who keeps the processors busy: made-up process tables, and a real neighbour.
#include "kernels/host/inventory/processes.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "tests/support/process.h"

namespace muster {
namespace {

using testing::TempDir;

constexpr int kSelf = 3;

/// A made-up /proc whose processes gain CPU time between two looks.
class FakeProc {
 public:
  FakeProc() {
    stat(0);
    process(kSelf, 1, "test", {});
  }

  struct Times {
    int ticks = 0;
    int reaped = 0;
    int started = 10;
    int cpu = 1;
    unsigned flags = 0;
  };
  void process(int pid, int parent, const std::string& name, const Times& times) const {
    std::string fields = std::to_string(pid) + " (" + name + ") S " + std::to_string(parent) + " 1 1 0 -1 " +
                         std::to_string(times.flags) + " 0 0 0 0 " + std::to_string(times.ticks) + " 0 " +
                         std::to_string(times.reaped) + " 0 20 0 1 0 " + std::to_string(times.started);
    for (int i = 23; i < 39; ++i) fields += " 0";
    dir_.write("proc/" + std::to_string(pid) + "/stat", fields + " " + std::to_string(times.cpu) + " 0 0\n");
  }
  /// A thread that has waited for a processor.
  void waits(int pid, int thread, double seconds) const {
    dir_.write("proc/" + std::to_string(pid) + "/task/" + std::to_string(thread) + "/schedstat",
               "1000 " + std::to_string(static_cast<int64_t>(seconds * 1e9)) + " 7\n");
  }
  void ends(int pid) const { std::filesystem::remove_all(dir_.path() / "proc" / std::to_string(pid)); }
  /// The machine's own count of busy ticks.
  void stat(int busyTicks, int steal = 0) const {
    dir_.write("proc/stat",
               "cpu " + std::to_string(busyTicks) + " 0 0 1000 0 0 0 " + std::to_string(steal) + " 0 0\n");
  }
  [[nodiscard]] CpuWatch watch(int self, ProcessClock clock = nullptr, std::vector<int> allowed = {}) const {
    return {Root(dir_.path()), self, std::move(clock), std::move(allowed)};
  }

 private:
  TempDir dir_;
};

void letTimePass() {
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
}

/// Looks, lets `change` happen, and looks again.
template <typename Change>
CpuUse useWhile(CpuWatch watch, Change change) {
  EXPECT_FALSE(watch.look()->has_value());
  letTimePass();
  change();
  const auto use = watch.look();
  EXPECT_TRUE(use.ok() && use->has_value());
  return use.ok() && use->has_value() ? **use : CpuUse{};
}

TEST(CpuWatch, NamesTheBusiestForeignProcessAndWhereItRan) {
  const FakeProc proc;
  proc.process(1, 0, "init", {});
  proc.process(50, 1, "muster-host", {});
  proc.process(123, 1, "stress-ng", {});
  const CpuUse use = useWhile(proc.watch(50), [&] { proc.process(123, 1, "stress-ng", {.ticks = 100}); });
  EXPECT_GT(use.busiest, 0);
  EXPECT_EQ(use.process, "stress-ng(123)");
  EXPECT_EQ(use.text, "stress-ng (pid 123) on cpu 1");
}

TEST(CpuWatch, OurOwnTreeAndOurAncestorsAreNotForeign) {
  const FakeProc proc;
  const auto write = [&](int ticks) {
    proc.process(1, 0, "init", {.ticks = ticks});
    proc.process(10, 1, "bash", {.ticks = ticks});
    proc.process(20, 10, "muster", {.ticks = ticks});
    proc.process(30, 20, "muster-guard", {.ticks = ticks});
    proc.process(31, 30, "muster-rank", {.ticks = ticks});
    proc.process(40, 20, "muster-guard", {.ticks = ticks});
    proc.process(5, 40, "rank-child", {.ticks = ticks});
  };
  write(0);
  const CpuUse use = useWhile(proc.watch(31), [&] { write(500); });
  EXPECT_EQ(use.process, "");
  EXPECT_EQ(use.busiest, 0);
}

TEST(CpuWatch, ARankThatAPersonRunsAloneKnowsItsGuard) {
  const FakeProc proc;
  const auto write = [&](int ticks) {
    proc.process(1, 0, "init", {});
    proc.process(10, 1, "bash", {});
    proc.process(30, 10, "muster-guard", {.ticks = ticks});
    proc.process(31, 30, "muster-rank", {});
    proc.process(32, 30, "orphan", {.ticks = ticks});
    proc.process(40, 10, "muster-rank", {.ticks = ticks / 2});
  };
  write(0);
  EXPECT_EQ(useWhile(proc.watch(31), [&] { write(500); }).process, "muster-rank(40)")
      << "of somebody else's run";
}

TEST(CpuWatch, ASiblingOfMusterIsForeign) {
  const FakeProc proc;
  proc.process(1, 0, "init", {});
  proc.process(10, 1, "bash", {});
  proc.process(20, 10, "muster", {});
  proc.process(21, 10, "neighbour", {});
  const CpuUse use = useWhile(proc.watch(20), [&] { proc.process(21, 10, "neighbour", {.ticks = 50}); });
  EXPECT_EQ(use.process, "neighbour(21)");
}

TEST(CpuWatch, AddsUpWhatForeignProcessesUseOnTheProcessorsWeMayUse) {
  const FakeProc proc;
  const auto write = [&](int ticks) {
    proc.process(1, 0, "init", {});
    proc.process(20, 1, "muster", {.ticks = ticks});
    proc.process(21, 1, "stress-ng", {.ticks = ticks / 2, .cpu = 0});
    proc.process(22, 1, "stress-ng", {.ticks = ticks / 2, .cpu = 1});
    proc.process(23, 1, "elsewhere", {.ticks = ticks, .cpu = 7});
    proc.process(24, 1, "kworker", {.ticks = ticks, .cpu = 0, .flags = 0x00200000});
  };
  write(0);
  const CpuUse all = useWhile(proc.watch(20), [&] { write(202); });
  EXPECT_NEAR(all.foreign * all.seconds, 1.00 + 1.00 + 2.01, 1e-9) << "kernel threads may work for us";
  write(0);
  const CpuUse here = useWhile(proc.watch(20, nullptr, {0, 1}), [&] { write(202); });
  EXPECT_NEAR(here.foreign * here.seconds, 2.00, 1e-9);
}

TEST(CpuWatch, ShowsHowLongAThreadOfOursWaitedForAProcessor) {
  const FakeProc proc;
  proc.process(1, 0, "init", {});
  proc.process(20, 1, "muster", {});
  proc.process(31, 20, "muster-rank", {});
  proc.process(40, 1, "neighbour", {});
  for (const int thread : {31, 32}) proc.waits(31, thread, 100);
  const CpuUse use = useWhile(proc.watch(20), [&] {
    proc.waits(31, 31, 100.001);
    proc.waits(31, 32, 100.004);
    proc.waits(40, 40, 5);
  });
  EXPECT_NEAR(use.waited * use.seconds, 0.004, 1e-6) << "the thread that waited longest, of ours alone";
}

TEST(CpuWatch, OneTickIsNotBusy) {
  const FakeProc proc;
  proc.process(1, 0, "init", {});
  proc.process(7, 1, "daemon", {});
  EXPECT_EQ(useWhile(proc.watch(kSelf), [&] { proc.process(7, 1, "daemon", {.ticks = 1}); }).busiest, 0);
}

TEST(CpuWatch, WithTheClockAShortBurstIsNotBusyAndALongOneIs) {
  const FakeProc proc;
  proc.process(1, 0, "init", {});
  proc.process(7, 1, "daemon", {});
  proc.process(8, 1, "cruncher", {});
  double gained = 0;
  const auto clock = [&](int pid) { return pid == 8 ? 2 + gained : pid == 7 ? 1 + gained / 10 : 1; };
  const CpuUse use = useWhile(proc.watch(kSelf, clock), [&] { gained = 0.025; });
  EXPECT_EQ(use.process, "cruncher(8)");
  EXPECT_NEAR(use.busiest * use.seconds, 0.020, 1e-6);
  EXPECT_EQ(useWhile(proc.watch(kSelf, clock), [&] { gained += 0.004; }).busiest, 0);
}

TEST(CpuWatch, AProcessThatTheClockCannotTellIsCountedInTicks) {
  const FakeProc proc;
  proc.process(1, 0, "init", {});
  proc.process(7, 1, "hidden", {});
  const auto clock = [](int pid) { return pid == 7 ? std::nullopt : std::optional<double>(1); };
  const CpuUse use = useWhile(proc.watch(kSelf, clock), [&] { proc.process(7, 1, "hidden", {.ticks = 4}); });
  EXPECT_EQ(use.process, "hidden(7)");
  EXPECT_NEAR(use.busiest * use.seconds, 0.03, 1e-6);
}

TEST(ProcessClock, TellsOurOwnTimeAndNothingOfAProcessThatIsGone) {
  const auto before = processCpuSeconds(getpid());
  ASSERT_TRUE(before.has_value());
  volatile int spin = 0;
  while (processCpuSeconds(getpid()).value_or(0) < *before + 0.002) spin = spin + 1;
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(processCpuSeconds(child).has_value());
}

TEST(CpuWatch, APidThatIsUsedAgainIsANewProcess) {
  const FakeProc proc;
  proc.process(1, 0, "init", {});
  proc.process(7, 1, "old", {.ticks = 1000});
  const CpuUse use =
      useWhile(proc.watch(kSelf), [&] { proc.process(7, 1, "new", {.ticks = 40, .started = 99}); });
  EXPECT_EQ(use.process, "new(7)");
  EXPECT_NEAR(use.busiest * use.seconds, 0.39, 1e-6);
}

TEST(CpuWatch, ShortLivedChildrenCountForWhoReapedThem) {
  const FakeProc proc;
  proc.process(1, 0, "init", {});
  proc.process(7, 1, "make", {});
  const CpuUse use = useWhile(proc.watch(kSelf), [&] { proc.process(7, 1, "make", {.reaped = 60}); });
  EXPECT_EQ(use.text, "make (pid 7) through its children");
  EXPECT_NEAR(use.busiest * use.seconds, 0.59, 1e-6);
}

TEST(CpuWatch, WhatWasKnownOfAnEndedGrandchildIsNotNew) {
  const FakeProc proc;
  proc.process(1, 0, "init", {});
  proc.process(7, 1, "make", {});
  proc.process(8, 7, "sh", {});
  proc.process(9, 8, "cc1plus", {.ticks = 5000});
  const CpuUse use = useWhile(proc.watch(kSelf), [&] {
    proc.ends(9);
    proc.ends(8);
    proc.process(7, 1, "make", {.reaped = 5010});
  });
  EXPECT_NEAR(use.busiest * use.seconds, 0.09, 1e-6);
}

TEST(CpuWatch, AKernelThreadIsNamedAsOne) {
  const FakeProc proc;
  proc.process(1, 0, "init", {});
  proc.process(7, 2, "kswapd0", {.flags = 0x200040});
  const CpuUse use =
      useWhile(proc.watch(kSelf), [&] { proc.process(7, 2, "kswapd0", {.ticks = 30, .flags = 0x200040}); });
  EXPECT_EQ(use.text, "kswapd0 (kernel thread 7) on cpu 1");
}

TEST(CpuWatch, AHostileNameIsParsedAndMadePrintable) {
  const FakeProc proc;
  proc.process(1, 0, "init", {});
  proc.process(7, 1, "a) R 1 (\x1b[31m", {});
  const CpuUse use =
      useWhile(proc.watch(kSelf), [&] { proc.process(7, 1, "a) R 1 (\x1b[31m", {.ticks = 30}); });
  EXPECT_NE(use.process.find("a) R 1 ("), std::string::npos);
  EXPECT_EQ(use.process.find('\x1b'), std::string::npos);
}

TEST(CpuWatch, BusyTimeThatNoProcessAccountsForIsUnseen) {
  const FakeProc proc;
  proc.process(1, 0, "init", {});
  const CpuUse use = useWhile(proc.watch(kSelf), [&] { proc.stat(100); });
  EXPECT_GT(use.unseen, 0);
  EXPECT_EQ(use.process, "");
}

TEST(CpuWatch, StolenTimeIsAShareOfTheWhole) {
  const FakeProc proc;
  proc.process(1, 0, "init", {});
  const CpuUse use = useWhile(proc.watch(kSelf), [&] { proc.stat(49, 51); });
  EXPECT_NEAR(use.steal, 0.5, 1e-6);
}

TEST(CpuWatch, HiddenProcessesAreAnError) {
  const FakeProc proc;  // without process 1
  CpuWatch watch = proc.watch(kSelf);
  const auto look = watch.look();
  ASSERT_FALSE(look.ok());
  EXPECT_NE(look.error().message.find("hidepid"), std::string::npos);
}

TEST(CpuWatch, TruncatedAndAlienFilesAreLeftOut) {
  const TempDir alien;
  alien.write("proc/1/stat",
              "1 (init) S 0 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n");
  alien.write("proc/2/stat", "2 (torn");
  alien.write("proc/3/stat", std::string(5000, '('));
  alien.write("proc/4/stat", "");
  alien.write("proc/stat", "cpu 1 1 1 1 1 1 1 1\n");
  CpuWatch watch(Root(alien.path()), 1, nullptr);
  EXPECT_TRUE(watch.look().ok());
}

/// Spins on CPU 0 under an init of its own, so that it is nobody's descendant here.
pid_t startOrphanSpinner(int reportTo) {
  const pid_t middle = fork();
  if (middle != 0) {
    waitpid(middle, nullptr, 0);
    return middle;
  }
  if (fork() != 0) _exit(0);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  sched_setaffinity(0, sizeof one, &one);
  (void)setpriority(PRIO_PROCESS, 0, -15);  // on a full machine too; only root may
  prctl(PR_SET_NAME, "neighbour");
  const pid_t self = getpid();
  const bool told = write(reportTo, &self, sizeof self) == sizeof self;
  volatile uint64_t spin = 0;
  while (told) spin = spin + 1;
  _exit(1);
}

TEST(CpuWatch, ARealNeighbourIsSeenAtWork) {
  int channel[2];
  ASSERT_EQ(pipe(channel), 0);
  startOrphanSpinner(channel[1]);
  pid_t neighbour = 0;
  ASSERT_EQ(read(channel[0], &neighbour, sizeof neighbour), static_cast<ssize_t>(sizeof neighbour));

  // Between two looks it gets 50 ms of CPU time, however long that takes on a loaded machine. Other processes
  // may be busier: who is named was at least as busy as it.
  CpuWatch watch(Root(), getpid(), processCpuSeconds);
  ASSERT_TRUE(watch.look().ok());
  const double before = processCpuSeconds(neighbour).value_or(-1);
  double used = 0;
  while (before >= 0 && used < 0.05) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    used = processCpuSeconds(neighbour).value_or(0) - before;
    ASSERT_GE(used, 0) << "the neighbour has ended";
  }
  const auto use = watch.look();
  kill(neighbour, SIGKILL);
  close(channel[0]);
  close(channel[1]);
  ASSERT_TRUE(use.ok() && use->has_value());
  constexpr double kBurst = 0.005;
  const double share = (used - kBurst) / (*use)->seconds;
  EXPECT_GE((*use)->busiest, share) << (*use)->process;
  EXPECT_NE((*use)->process, "");
  EXPECT_GE((*use)->foreign, share);
}

}  // namespace
}  // namespace muster
