// SPDX-License-Identifier: Apache-2.0
// Forks the limited child process and reads its output.
#include "runner/system/limited_child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <new>

#include "runner/core/clock.h"
#include "runner/core/units.h"
#include "runner/system/files.h"

namespace muster {
namespace {

constexpr int kSealedPipe = 3;
constexpr int kExitWorkFailed = 3;
constexpr int kExitNoMemory = 4;

/// An integer that parent and child share.
class SharedLine {
 public:
  SharedLine() {
    void* memory = mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) line_ = static_cast<volatile int*>(memory);
  }
  ~SharedLine() {
    if (line_ != nullptr) munmap(const_cast<int*>(line_), sizeof(int));
  }
  SharedLine(const SharedLine&) = delete;
  SharedLine& operator=(const SharedLine&) = delete;
  [[nodiscard]] volatile int* get() const { return line_; }

 private:
  volatile int* line_ = nullptr;
};

void bound(__rlimit_resource resource, rlim_t soft, rlim_t hard) {
  const rlimit limit{soft, hard};
  if (setrlimit(resource, &limit) != 0) _exit(kExitWorkFailed);
}

/// Where /proc cannot be read, memory is not bounded here.
void boundMemory(size_t more) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they map terabytes
  rlim_t pages = 0;
  rlimit now{};
  if (!(std::ifstream("/proc/self/statm") >> pages) || getrlimit(RLIMIT_AS, &now) != 0) return;
  const rlim_t most = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + more;
  bound(RLIMIT_AS, std::min(most, now.rlim_cur), std::min(most, now.rlim_max));
#else
  static_cast<void>(more);
#endif
}

/// Lets the child compute, hand back its result and end; whatever else it asks of the kernel fails with
/// EPERM. It is a second line of defence, which a kernel without seccomp does not have.
void forbidSystemCalls() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they read files of /proc
  scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));      // its memory goes with the process
  for (const int call :
       {SCMP_SYS(brk), SCMP_SYS(mmap), SCMP_SYS(mremap), SCMP_SYS(munmap), SCMP_SYS(mprotect),
        SCMP_SYS(madvise), SCMP_SYS(futex), SCMP_SYS(sched_yield), SCMP_SYS(nanosleep),
        SCMP_SYS(clock_nanosleep), SCMP_SYS(clock_gettime), SCMP_SYS(getpid), SCMP_SYS(gettid),
        SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigreturn), SCMP_SYS(restart_syscall),
        SCMP_SYS(exit), SCMP_SYS(exit_group)})
    seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0);
  seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(write), 1, SCMP_A0(SCMP_CMP_EQ, kSealedPipe, 0));
  seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1, SCMP_A1(SCMP_CMP_EQ, F_GETFD, 0));
  // abort() signals the process itself.
  seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
                   SCMP_A0(SCMP_CMP_EQ, static_cast<scmp_datum_t>(getpid()), 0));
  seccomp_load(filter);
#endif
}

/// Leaves the child with the limits that the kernel keeps, and a sealed one with nothing but the pipe.
/// Returns the pipe.
int confine(int pipe, const ChildLimits& limits, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (getppid() != parent) _exit(kExitWorkFailed);
  for (int signal = 1; signal < NSIG; ++signal) std::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const auto seconds = static_cast<rlim_t>(limits.cpuSeconds);
  rlimit cpu{};
  if (getrlimit(RLIMIT_CPU, &cpu) != 0) _exit(kExitWorkFailed);
  bound(RLIMIT_CPU, std::min(seconds, cpu.rlim_cur), std::min(seconds + 1, cpu.rlim_max));
  bound(RLIMIT_CORE, 0, 0);
  bound(RLIMIT_FSIZE, 0, 0);
  boundMemory(limits.process);
  if (!limits.isSealed) return pipe;
  if (pipe != kSealedPipe && dup2(pipe, kSealedPipe) < 0) _exit(kExitWorkFailed);
  close_range(kSealedPipe + 1, ~0U, 0);
  forbidSystemCalls();
  return kSealedPipe;
}

void writeAll(int pipe, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = write(pipe, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(kExitWorkFailed);
    done += static_cast<size_t>(n);
  }
}

[[noreturn]] void childMain(int pipe, const ChildLimits& limits, pid_t parent, volatile int* line,
                            const std::function<std::string(volatile int*)>& work) {
  pipe = confine(pipe, limits, parent);
  try {
    writeAll(pipe, work(line));
  } catch (const std::bad_alloc&) {
    _exit(kExitNoMemory);
  } catch (...) {
    _exit(kExitWorkFailed);
  }
  _exit(0);
}

enum class ReadEnd { kEof, kDeadline, kTooMuch, kFailed };

ReadEnd readUntil(int pipe, double deadline, size_t limit, std::string& out) {
  char buffer[65536];
  for (;;) {
    const double left = deadline - systemClock().now();
    if (left <= 0) return ReadEnd::kDeadline;
    pollfd waited{pipe, POLLIN, 0};
    const int ready = poll(&waited, 1, static_cast<int>(left * 1000) + 1);
    if (ready < 0 && errno != EINTR) return ReadEnd::kFailed;
    if (ready <= 0) continue;
    const ssize_t n = read(pipe, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ReadEnd::kFailed;
    if (n == 0) return ReadEnd::kEof;
    if (out.size() + static_cast<size_t>(n) > limit) return ReadEnd::kTooMuch;
    out.append(buffer, static_cast<size_t>(n));
  }
}

/// Waits for the child's end until the deadline, then kills it. Returns its wait status; `late` tells of the
/// kill.
int reap(pid_t child, double deadline, bool& late) {
  int status = 0;
  for (;;) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child || (ended < 0 && errno != EINTR)) return status;
    if (systemClock().now() >= deadline) break;
    usleep(200);
  }
  late = true;
  kill(child, SIGKILL);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

std::string tooLong(const std::string& howLong, const ChildLimits& limits) {
  return fmt::format("was still running after {}{}", howLong, limits.hint);
}

std::string problemOf(ReadEnd end, int status, bool late, const ChildLimits& limits) {
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  if (end == ReadEnd::kTooMuch)
    return fmt::format("hands back more than {}", formatQuantity(static_cast<double>(limits.output), "B"));
  if (end == ReadEnd::kFailed) return "could not be evaluated: the pipe to its process cannot be read";
  if (end == ReadEnd::kDeadline || late) return tooLong(formatQuantity(limits.wallSeconds, "s"), limits);
  if (signal == SIGXCPU) return tooLong(fmt::format("{}s of CPU time", limits.cpuSeconds), limits);
  if (signal == SIGINT || signal == SIGTERM) return "was interrupted";
  if (signal != 0)
    return fmt::format("ended its process unexpectedly, by signal {} ({})", signal, strsignal(signal));
  if (WEXITSTATUS(status) == kExitNoMemory)
    return fmt::format("needs more than {} of memory for its process",
                       formatQuantity(static_cast<double>(limits.process), "B"));
  if (WEXITSTATUS(status) != 0)
    return fmt::format("ended its process unexpectedly, with status {}", WEXITSTATUS(status));
  return "";
}

ChildEnd failed(const char* what) {
  return {"", fmt::format("could not be evaluated: {}: {}", what, errnoText(errno)), 0};
}

}  // namespace

ChildEnd runInChild(const ChildLimits& limits, const std::function<std::string(volatile int* line)>& work) {
  const SharedLine line;
  if (line.get() == nullptr) return failed("mmap");
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return failed("pipe");
  Fd readEnd(ends[0]);
  Fd writeEnd(ends[1]);
  const double deadline = systemClock().now() + limits.wallSeconds;
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return failed("fork");
  if (child == 0) childMain(writeEnd.get(), limits, parent, line.get(), work);
  writeEnd.reset();
  ChildEnd result;
  const ReadEnd end = readUntil(readEnd.get(), deadline, limits.output, result.output);
  bool late = false;
  const int status = reap(child, end == ReadEnd::kEof ? deadline : 0, late);
  result.problem = problemOf(end, status, late, limits);
  result.line = *line.get();
  return result;
}

}  // namespace muster
