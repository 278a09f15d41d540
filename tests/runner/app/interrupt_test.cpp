// SPDX-License-Identifier: Apache-2.0
// What a run says ended it. Each case in a process of its own: handlers stay, and a second signal is final.
#include "runner/app/process/interrupt.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace muster {
namespace {

/// Is interrupted by `signal` while its job has `left` more seconds of `minutes`.
[[noreturn]] void endBy(int signal, long left, const char* minutes) {
  setenv("SLURM_JOB_ID", "17", 1);
  setenv("MUSTER_JOB_END", fmt::format("{}", time(nullptr) + left).c_str(), 1);
  setenv("MUSTER_JOB_MINUTES", minutes, 1);
  installInterruptHandlers();
  raise(signal);
  fmt::print(stderr, "said: {}\n", interruptionText());
  _exit(interrupted().load() ? 0 : 1);
}

TEST(InterruptDeathTest, NamesTheTimeLimitThatEndedTheRun) {
  // 30 s before the end, as the script asks; Slurm may be 60 s sooner; a step is told at the end itself.
  for (const long left : {30, 90, 0, -20})
    EXPECT_EXIT(
        endBy(SIGTERM, left, "90"), ::testing::ExitedWithCode(0),
        "said: the time limit of Slurm job 17 \\(1h30m\\) ended the run; set a longer one with --time\n");
}

TEST(InterruptDeathTest, NamesTheSignalOtherwise) {
  EXPECT_EXIT(endBy(SIGTERM, 600, "90"), ::testing::ExitedWithCode(0),
              "said: the run was interrupted \\(SIGTERM\\)\n");
  EXPECT_EXIT(endBy(SIGINT, 30, "90"), ::testing::ExitedWithCode(0),
              "said: the run was interrupted \\(SIGINT\\)\n");
  EXPECT_EXIT(endBy(SIGTERM, 30, "no"), ::testing::ExitedWithCode(0),
              "said: the run was interrupted \\(SIGTERM\\)\n");
}

TEST(Interrupt, SaysNothingWhileNothingHasEndedIt) {
  EXPECT_EQ(interruptionText(), "");
}

}  // namespace
}  // namespace muster
