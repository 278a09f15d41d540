// SPDX-License-Identifier: Apache-2.0
#include "runner/dispatch/process_state.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace muster::testing {
namespace {

/// A child of this test that waits for signals, under a name that tries to confuse.
pid_t waitingChild(const char* name) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_NAME, name, 0, 0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  while (true) pause();
}

TEST(ProcessState, TellsAStoppedProcessWhateverItsName) {
  const pid_t pid = waitingChild("x) Z 1 (y");
  kill(pid, SIGSTOP);
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, WUNTRACED), pid);
  const auto stopped = readProcessState(pid);
  kill(pid, SIGKILL);
  waitpid(pid, &status, 0);
  ASSERT_TRUE(stopped.ok()) << stopped.error().text();
  EXPECT_EQ(stopped->state, 'T');
}

TEST(ProcessState, CountsOwnCpuTime) {
  const auto before = readProcessState(getpid());
  ASSERT_TRUE(before.ok()) << before.error().text();
  volatile double sum = 0;
  while (readProcessState(getpid())->cpuSeconds < before->cpuSeconds + 0.05)
    for (int i = 0; i < 100000; ++i) sum = sum + i;
  EXPECT_EQ(readProcessState(getpid())->state, 'R');
}

TEST(ProcessState, FailsOnAProcessThatIsGone) {
  const pid_t pid = waitingChild("gone");
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  const auto gone = readProcessState(pid);
  ASSERT_FALSE(gone.ok());
  EXPECT_NE(gone.error().text().find("/proc/"), std::string::npos) << gone.error().text();
}

}  // namespace
}  // namespace muster::testing
