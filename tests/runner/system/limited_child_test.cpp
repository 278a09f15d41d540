// SPDX-License-Identifier: Apache-2.0
// What ends a child that takes too much, and what it cannot reach.
#include "runner/system/limited_child.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>

#include "tests/support/process.h"

namespace muster::testing {
namespace {

TEST(LimitedChild, IsEndedOnceItHasUsedItsTime) {
  ChildLimits limits;
  limits.cpuSeconds = 1;
  limits.hint = "; why?";
  const ChildEnd end = runInChild(limits, [](volatile int* line) {
    for (;;) *line = *line + 1;
    return std::string();
  });
  EXPECT_EQ(end.problem, "was still running after 1s of CPU time; why?");
}

TEST(LimitedChild, ThatIsNotSealedMayReadAndHaveChildren) {
  ChildLimits limits;
  limits.isSealed = false;
  const TempDir folder;
  const auto path = folder.write("text", "read");
  const ChildEnd end = runInChild(limits, [&](volatile int*) {
    return readWhole(path) +
           runInChild(ChildLimits(), [](volatile int*) { return std::string(" below"); }).output;
  });
  EXPECT_EQ(end.output, "read below") << end.problem;
}

TEST(LimitedChild, IsKilledByTheWallClockWhenItSleeps) {
  ChildLimits limits;
  limits.wallSeconds = 0.2;
  const ChildEnd end = runInChild(limits, [](volatile int* line) {
    *line = 7;
    for (;;) usleep(1000);
    return std::string();
  });
  EXPECT_EQ(end.line, 7);
  EXPECT_EQ(end.problem, "was still running after 200ms");
}

TEST(LimitedChild, TellsTheEndOfAChildThatCrashes) {
  const ChildEnd killed = runInChild({}, [](volatile int*) -> std::string {
    raise(SIGKILL);
    return "";
  });
  EXPECT_NE(killed.problem.find("ended its process unexpectedly, by signal 9"), std::string::npos)
      << killed.problem;
  const ChildEnd threw = runInChild({}, [](volatile int*) -> std::string { throw 3; });
  EXPECT_NE(threw.problem.find("ended its process unexpectedly, with status 3"), std::string::npos)
      << threw.problem;
}

TEST(LimitedChild, BoundsWhatTheChildHandsBack) {
  ChildLimits limits;
  limits.output = 1000;
  EXPECT_EQ(runInChild(limits, [](volatile int*) { return std::string(1000, 'x'); }).output.size(), 1000u);
  EXPECT_EQ(runInChild(limits, [](volatile int*) { return std::string(1001, 'x'); }).problem,
            "hands back more than 1000 B");
}

TEST(LimitedChild, BoundsTheMemoryOfTheChild) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer itself maps more";
#endif
  const auto taking = [](size_t bytes) {
    return runInChild({}, [&](volatile int*) { return std::to_string(std::string(bytes, 'x').size()); });
  };
  EXPECT_EQ(taking(size_t{400} << 20).output, "419430400");
  EXPECT_EQ(taking(size_t{600} << 20).problem, "needs more than 512 MiB of memory for its process");
}

TEST(LimitedChild, LeavesTheChildNoFileProcessOrSocket) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer itself needs these system calls";
#endif
  const ChildEnd end = runInChild({}, [](volatile int*) {
    std::string could;
    const auto attempt = [&](const char* what, long result) {
      if (result >= 0 || errno != EPERM) could += std::string(what) + " ";
    };
    char* const argv[] = {const_cast<char*>("/bin/true"), nullptr};
    attempt("open", open("/etc/passwd", O_RDONLY));
    attempt("socket", socket(AF_INET, SOCK_STREAM, 0));
    attempt("fork", fork());
    attempt("kill", kill(getppid(), 0));
    attempt("unlink", unlink("/nowhere/at/all"));
    attempt("ptrace", ptrace(PTRACE_TRACEME, 0, nullptr, nullptr));
    attempt("write", write(STDOUT_FILENO, "x", 1));
    attempt("execve", execve(argv[0], argv, nullptr));
    return "could: " + could;
  });
  EXPECT_EQ(end.output, "could: ");
}

TEST(LimitedChild, LeavesTheChildNoDescriptor) {
  const TempDir folder;
  const auto path = folder.write("open", "");
  FILE* file = fopen(path.c_str(), "r");
  ASSERT_NE(file, nullptr);
  const ChildEnd end = runInChild({}, [](volatile int*) {
    std::string open;
    for (int fd = 0; fd < 256; ++fd)
      if (fcntl(fd, F_GETFD) >= 0) open += std::to_string(fd) + " ";
    return open;
  });
  fclose(file);
  EXPECT_EQ(end.output, "0 1 2 3 ");
}

}  // namespace
}  // namespace muster::testing
