// SPDX-License-Identifier: Apache-2.0
// Engine processes under supervision: bounded output, a known end, nothing left behind.
#include "kernels/host/rdma/child_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "runner/core/clock.h"
#include "tests/support/process.h"

namespace muster {
namespace {

Result<ChildProcess> shell(const std::string& script) {
  return ChildProcess::start({"/bin/sh", "-c", script}, "engine");
}

Status waitFor(ChildProcess& process, double seconds = 20) {
  const double until = systemClock().now() + seconds;
  while (!process.ended() && systemClock().now() < until) MUSTER_CHECK_OK(process.service(0.05));
  return {};
}

TEST(ChildProcess, KeepsBothStreamsToTheLastByte) {
  auto process = shell("echo out; echo err >&2; exit 0");
  ASSERT_TRUE(process.ok());
  ASSERT_TRUE(waitFor(*process).ok());
  EXPECT_TRUE(process->ended());
  EXPECT_TRUE(process->verdict().ok());
  EXPECT_NE(process->output().find("out\n"), std::string::npos);
  EXPECT_NE(process->output().find("err\n"), std::string::npos);
}

TEST(ChildProcess, TellsCodeSignalAndLastWords) {
  auto failed = shell("echo broken cable; exit 7");
  ASSERT_TRUE(waitFor(*failed).ok());
  const Status code = failed->verdict();
  ASSERT_FALSE(code.ok());
  EXPECT_EQ(code.error().message, "engine ended with code 7; it printed: broken cable");
  auto killed = shell("kill -SEGV $$");
  ASSERT_TRUE(waitFor(*killed).ok());
  ASSERT_FALSE(killed->verdict().ok());
  EXPECT_NE(killed->verdict().error().message.find("signal 11 (SIGSEGV)"), std::string::npos);
}

TEST(ChildProcess, BoundsItsOutput) {
  auto process = shell("while :; do echo 0123456789abcdef0123456789abcdef; done");
  ASSERT_TRUE(process.ok());
  const Status status = waitFor(*process);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("more than 64 KiB"), std::string::npos);
  EXPECT_LT(process->output().size(), ChildProcess::kMostOutput + 8193);
}

TEST(ChildProcess, KillsWhatIgnoresTermAndWhatItStarted) {
  const testing::TempDir folder;
  const std::string file = (folder.path() / "pid").string();
  {
    auto process = shell("trap '' TERM; sleep 1000 & echo $! > " + file + "; wait");
    ASSERT_TRUE(process.ok());
    const double until = systemClock().now() + 20;
    while (testing::readWhole(file).empty() && systemClock().now() < until) usleep(1000);
  }
  const int child = std::stoi("0" + testing::readWhole(file));
  ASSERT_GT(child, 0);
  for (int i = 0; i < 200 && kill(child, 0) == 0; ++i) usleep(10'000);  // its reaper may be slow
  const std::string state = testing::readWhole("/proc/" + std::to_string(child) + "/stat");
  EXPECT_TRUE(state.empty() || state.find(") Z ") != std::string::npos) << state;
}

TEST(ChildProcess, SaysWhenTheProgramCannotBeStarted) {
  auto process = ChildProcess::start({"/nonexistent/program"}, "engine");
  ASSERT_TRUE(process.ok());
  ASSERT_TRUE(waitFor(*process).ok());
  ASSERT_FALSE(process->verdict().ok());
  EXPECT_NE(process->verdict().error().message.find("No such file"), std::string::npos);
}

TEST(ChildProcess, EndsWhenItsOutputIsClosedEarly) {
  auto process = shell("exec >&- 2>&-; sleep 0.2; exit 3");
  ASSERT_TRUE(waitFor(*process).ok());
  EXPECT_TRUE(process->ended());
  EXPECT_FALSE(process->verdict().ok());
}

}  // namespace
}  // namespace muster
