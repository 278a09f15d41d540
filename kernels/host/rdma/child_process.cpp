// SPDX-License-Identifier: Apache-2.0
// One process of an engine under supervision.
#include "kernels/host/rdma/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "kernels/host/rdma/perftest_output.h"
#include "runner/core/clock.h"

namespace muster {

namespace {

constexpr double kKillPatience = 5;  // seconds; what survives KILL is stuck in the kernel

[[noreturn]] void becomeChild(char* const* arguments, int output, pid_t parent) {
  // Only calls that are safe after a fork of a program with threads.
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // the parent died before the line above
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, 0);
  dup2(output, 1);
  dup2(output, 2);
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGPIPE}) sigaction(signal, &plain, nullptr);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execv(arguments[0], arguments);
  const char* problem = strerrordesc_np(errno);
  if (write(2, problem, strlen(problem)) < 0) _exit(127);
  _exit(127);
}

}  // namespace

bool Patience::over() const {
  return systemClock().now() >= until || wasCancelled();
}

Result<ChildProcess> ChildProcess::start(const std::vector<std::string>& command, std::string name) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return Error{ErrorCode::kIo, "cannot make a pipe: " + errnoText(errno), name};
  Fd ours(ends[0]);
  const Fd theirs(ends[1]);
  fcntl(ours.get(), F_SETFL, O_NONBLOCK);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return Error{ErrorCode::kIo, "cannot start a process: " + errnoText(errno), name};
  if (pid == 0) becomeChild(arguments.data(), theirs.get(), parent);
  setpgid(pid, pid);  // in both, so that it is done whoever comes first
  return ChildProcess(pid, std::move(ours), std::move(name));
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      output_(std::move(other.output_)),
      name_(std::move(other.name_)),
      text_(std::move(other.text_)),
      status_(other.status_),
      ended_(other.ended_) {}

ChildProcess::~ChildProcess() {
  if (pid_ > 0 && !ended_) (void)kill();
}

bool ChildProcess::reap() {
  // WNOWAIT first: while it is a zombie its number is not given to others, so the group can still be killed.
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != pid_)
    return false;
  ::kill(-pid_, SIGKILL);  // what it left behind
  waitpid(pid_, &status_, 0);
  return true;
}

Status ChildProcess::service(double seconds) {
  if (ended_) return {};
  // Read after the end has been noticed: what it printed last is then in the pipe.
  ended_ = reap();
  if (!ended_) {
    pollfd ready{output_.get(), POLLIN, 0};
    poll(&ready, output_.valid() ? 1 : 0, static_cast<int>(std::max(0.0, seconds) * 1000));
    // Closed output makes poll return at once: do not spin until the process ends, too.
    if ((ready.revents & (POLLHUP | POLLIN)) == POLLHUP) usleep(1000);
  }
  char chunk[8192];
  while (output_.valid()) {
    const ssize_t got = read(output_.get(), chunk, sizeof chunk);
    if (got <= 0) break;
    text_.append(chunk, static_cast<size_t>(got));
    if (text_.size() > kMostOutput)
      return Error{ErrorCode::kProtocol,
                   fmt::format("{} printed more than {} KiB; {}", name_, kMostOutput >> 10, lastWords(text_)),
                   ""};
  }
  return {};
}

Status ChildProcess::kill() {
  const double until = systemClock().now() + kKillPatience;
  ::kill(-pid_, SIGKILL);
  while (!(ended_ = reap()) && systemClock().now() < until) usleep(2000);
  if (ended_) return {};
  return Error{ErrorCode::kTimeout,
               fmt::format("{} (process {}) survives KILL: it is stuck in the kernel", name_, pid_), ""};
}

Status ChildProcess::verdict() const {
  if (WIFEXITED(status_) && WEXITSTATUS(status_) == 0) return {};
  const std::string how =
      WIFSIGNALED(status_)
          ? fmt::format("was killed by signal {} (SIG{})", WTERMSIG(status_), sigabbrev_np(WTERMSIG(status_)))
          : fmt::format("ended with code {}", WEXITSTATUS(status_));
  return Error{ErrorCode::kIo, fmt::format("{} {}; {}", name_, how, lastWords(text_)), ""};
}

}  // namespace muster
