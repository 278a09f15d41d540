// SPDX-License-Identifier: Apache-2.0
// Programs under supervision: bounded output, a known end, nothing left behind.
#include "runner/system/child_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <thread>

#include "runner/core/clock.h"
#include "tests/support/process.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kEnough = 60;  // seconds; only a program that never ends takes them

ProgramSpec shell(const std::string& script) {
  return {.command = {"/bin/sh", "-c", script}, .name = "engine"};
}

/// The number that a program wrote into `file`.
int pidIn(const std::filesystem::path& file) {
  const double until = systemClock().now() + kEnough;
  while (testing::readWhole(file).find('\n') == std::string::npos && systemClock().now() < until)
    usleep(1000);
  return std::stoi("0" + testing::readWhole(file));
}

/// Whether it is gone, or only its reaper is late.
bool gone(int pid) {
  for (int i = 0; i < 3000; ++i) {
    const std::string state = testing::readWhole("/proc/" + std::to_string(pid) + "/stat");
    if (state.empty() || state.find(") Z ") != std::string::npos) return true;
    usleep(10'000);
  }
  return false;
}

TEST(ChildProcess, WorksInItsFolder) {
  ProgramSpec program = shell("pwd");
  program.folder = "/proc";
  const auto ended = runProgram(program, kEnough);
  ASSERT_TRUE(ended.ok()) << ended.error().text();
  EXPECT_EQ(ended->out(), "/proc\n");
  program.folder = "/none";
  EXPECT_EQ(runProgram(program, kEnough).error().code, ErrorCode::kNotFound);
}

TEST(ChildProcess, TellsCodeSignalAndOutputsApart) {
  const auto ended = runProgram(shell("echo out; echo err >&2; exit 7"), kEnough);
  ASSERT_TRUE(ended.ok()) << ended.error().text();
  EXPECT_EQ(ended->exitCode(), 7);
  EXPECT_EQ(ended->signal(), 0);
  EXPECT_EQ(ended->out(), "out\n");
  EXPECT_EQ(ended->err(), "err\n");
  const auto killed = runProgram(shell("kill -SEGV $$"), kEnough);
  ASSERT_TRUE(killed.ok());
  EXPECT_EQ(killed->exitCode(), -1);
  EXPECT_EQ(killed->signal(), SIGSEGV);
}

TEST(ChildProcess, KeepsBothOutputsInOneToTheLastByte) {
  ProgramSpec program = shell("echo out; echo err >&2; printf last");
  program.oneOutput = true;
  const auto ended = runProgram(program, kEnough);
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(ended->out(), "out\nerr\nlast");
  EXPECT_EQ(ended->err(), "");
}

TEST(ChildProcess, GivesItsInputWhetherItIsReadOrNot) {
  ProgramSpec program{.command = {"cat"}, .input = std::string(1 << 20, 'x')};
  const auto read = runProgram(program, kEnough);
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(read->out(), program.input);
  ProgramSpec closes = shell("exec <&-; echo done");
  closes.input = std::string(1 << 20, 'x');
  EXPECT_EQ(runProgram(closes, kEnough)->out(), "done\n");
  EXPECT_EQ(runProgram({.command = {"cat"}}, kEnough)->out(), "")
      << "without an input there is nothing to read";
}

TEST(ChildProcess, WorksWhereOurOwnStandardInputIsClosed) {
  const pid_t child = fork();
  if (child == 0) {
    close(STDIN_FILENO);  // now the first pipe gets number 0
    const auto ended = runProgram({.command = {"cat"}, .input = "text"}, kEnough);
    _exit(ended.ok() && ended->out() == "text" ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(ChildProcess, GivesNoOtherDescriptorAndDefaultSignals) {
  const int leaked = dup(STDERR_FILENO);  // not close-on-exec
  signal(SIGUSR1, SIG_IGN);
  const auto ended = runProgram(shell("ls /proc/self/fd | wc -l; kill -USR1 $$; echo survived"), kEnough);
  signal(SIGUSR1, SIG_DFL);
  close(leaked);
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(ended->out(), "4\n") << "0 to 2, and the folder that ls reads";
  EXPECT_EQ(ended->signal(), SIGUSR1);
}

TEST(ChildProcess, GivesDescriptorsByTheirPlaceInTheList) {
  const testing::TempDir folder;
  const Fd file(open(folder.write("text", "of descriptor 3").c_str(), O_RDONLY | O_CLOEXEC));
  auto out = makePipe();
  ASSERT_TRUE(out.ok());
  const auto pid = spawn({.command = {"sh", "-c", "cat <&3"}},
                         {file.get(), out->write.get(), out->write.get(), file.get()});
  ASSERT_TRUE(pid.ok());
  int status = -1;
  ASSERT_EQ(waitpid(*pid, &status, 0), *pid);
  char text[64] = {};
  EXPECT_GT(read(out->read.get(), text, sizeof text - 1), 0);
  EXPECT_STREQ(text, "of descriptor 3");
}

TEST(ChildProcess, LeavesOutAndReplacesVariables) {
  setenv("SBATCH_REQUEUE", "1", 1);
  setenv("SBATCHLESS", "stays", 1);
  setenv("MUSTER_TEST_PLACE", "here", 1);
  const auto ended = runProgram(
      {.command = {"env"}, .without = {"SBATCH_"}, .with = {"MUSTER_TEST_PLACE=elsewhere", "NEW=1"}},
      kEnough);
  ASSERT_TRUE(ended.ok());
  EXPECT_THAT(ended->out(), Not(HasSubstr("SBATCH_REQUEUE")));
  EXPECT_THAT(ended->out(), HasSubstr("SBATCHLESS=stays\n"));
  EXPECT_THAT(ended->out(), HasSubstr("NEW=1\n"));
  EXPECT_THAT(ended->out(), HasSubstr("MUSTER_TEST_PLACE=elsewhere\n"));
  EXPECT_THAT(ended->out(), Not(HasSubstr("MUSTER_TEST_PLACE=here")));
}

TEST(ChildProcess, NamesAMissingProgram) {
  for (const char* name : {"/nonexistent/program", "no-such-program-anywhere"}) {
    const auto missing = runProgram({.command = {name}}, kEnough);
    ASSERT_FALSE(missing.ok());
    EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
    EXPECT_THAT(missing.error().message, HasSubstr(std::string("cannot start ") + name + ": No such file"));
  }
}

TEST(ChildProcess, BoundsAFloodOnEitherOutput) {
  for (const char* stream : {"1", "2"}) {
    ProgramSpec program = shell(std::string("while :; do echo 0123456789abcdef >&") + stream + "; done");
    program.mostOutput = 64u << 10;
    const auto flood = runProgram(program, kEnough);
    ASSERT_FALSE(flood.ok());
    EXPECT_EQ(flood.error().code, ErrorCode::kProtocol);
    EXPECT_EQ(flood.error().message, "engine printed more than 64 KiB");
  }
}

TEST(ChildProcess, EndsAtItsDeadlineWhatIgnoresTermAndWhatItStarted) {
  const testing::TempDir folder;
  const auto file = folder.path() / "pid";
  auto child = ChildProcess::start(shell("trap '' TERM; sleep 1000 & echo $! > " + file.string() + "; wait"));
  ASSERT_TRUE(child.ok());
  const int below = pidIn(file);
  ASSERT_GT(below, 0);
  EXPECT_TRUE(child->kill().ok());
  EXPECT_TRUE(child->ended());
  EXPECT_EQ(child->signal(), SIGKILL);
  EXPECT_TRUE(gone(below));
  const auto slow = runProgram(shell("trap '' TERM; sleep 1000"), 0.2);
  ASSERT_FALSE(slow.ok());
  EXPECT_EQ(slow.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(slow.error().message, "engine did not end within 0.2 s");
}

TEST(ChildProcess, KillsWhatIsLeftWhenTheObjectGoes) {
  const testing::TempDir folder;
  const auto file = folder.path() / "pid";
  int below = 0;
  {
    auto child = ChildProcess::start(shell("sleep 1000 & echo $! > " + file.string() + "; wait"));
    ASSERT_TRUE(child.ok());
    below = pidIn(file);
  }
  ASSERT_GT(below, 0);
  EXPECT_TRUE(gone(below));
}

TEST(ChildProcess, DoesNotWaitForGrandchildrenThatKeepItsOutputOpen) {
  const testing::TempDir folder;
  const auto inGroup = folder.path() / "group";
  const auto ended = runProgram(shell("sleep 1000 & echo $! > " + inGroup.string() + "; echo told"), kEnough);
  ASSERT_TRUE(ended.ok()) << ended.error().text();
  EXPECT_EQ(ended->out(), "told\n");
  EXPECT_TRUE(gone(pidIn(inGroup)));
  const auto outside = folder.path() / "outside";
  const auto fled =
      runProgram(shell("setsid sh -c 'echo $$ > " + outside.string() + "; exec sleep 1000' & while [ ! -s " +
                       outside.string() + " ]; do sleep 0.01; done; echo told"),
                 kEnough);
  ASSERT_TRUE(fled.ok()) << fled.error().text();
  EXPECT_EQ(fled->out(), "told\n");
  kill(pidIn(outside), SIGKILL);
}

TEST(ChildProcess, NoticesTheEndOfOneThatClosedItsOutputs) {
  const auto ended = runProgram(shell("exec >&- 2>&-; sleep 0.2; exit 3"), kEnough);
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(ended->exitCode(), 3);
}

TEST(ChildProcess, DiesWithTheThreadThatStartedItIfAsked) {
  const testing::TempDir folder;
  const auto file = folder.path() / "pid";
  std::optional<Result<ChildProcess>> child;
  std::thread([&] {
    ProgramSpec program = shell("echo $$ > " + file.string() + "; exec sleep 1000");
    program.diesWithThread = true;
    child.emplace(ChildProcess::start(program));
    EXPECT_GT(pidIn(file), 0);
  }).join();
  ASSERT_TRUE(child && child->ok());
  const double until = systemClock().now() + kEnough;
  while (!(*child)->ended() && systemClock().now() < until) ASSERT_TRUE((*child)->service(0.05).ok());
  EXPECT_EQ((*child)->signal(), SIGKILL);
}

}  // namespace
}  // namespace muster
