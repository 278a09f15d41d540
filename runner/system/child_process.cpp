// SPDX-License-Identifier: Apache-2.0
// See child_process.h.
#include "runner/system/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "runner/core/clock.h"
#include "runner/core/text.h"

namespace muster {
namespace {

constexpr double kKillPatience = 5;  // seconds; what survives KILL is stuck in the kernel
constexpr double kLook = 0.1;        // seconds between looks at the deadline

/// All that a child needs between vfork and exec, made before: it may allocate nothing.
struct Start {
  char* const* command;
  char* const* environment;
  const std::vector<Fd>* descriptors;
  const char* folder;
  bool diesWithThread;
  pid_t parent;
  volatile int error;
};

[[noreturn]] void becomeProgram(Start& start) {
  setpgid(0, 0);
  if (start.diesWithThread) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != start.parent) _exit(127);  // the parent died before the line above
  }
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) sigaction(signal, &plain, nullptr);
  if (start.folder != nullptr && chdir(start.folder) != 0) {
    start.error = errno;
    _exit(127);
  }
  int next = 0;
  for (const Fd& fd : *start.descriptors) dup2(fd.get(), next++);
  closefrom(next);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execvpe(start.command[0], start.command, start.environment);
  start.error = errno;
  _exit(127);
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

std::vector<std::string> environmentOf(const ProgramSpec& program) {
  std::vector<std::string> kept = program.with;
  std::vector<std::string> dropped = program.without;
  for (const std::string& variable : program.with)
    dropped.push_back(variable.substr(0, variable.find('=') + 1));
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (std::none_of(dropped.begin(), dropped.end(),
                     [&](const std::string& prefix) { return std::string_view(*entry).starts_with(prefix); }))
      kept.emplace_back(*entry);
  return kept;
}

Error systemError(const std::string& what) {
  return {ErrorCode::kIo, fmt::format("cannot {}: {}", what, errnoText(errno)), ""};
}

/// Copies above all numbers that the child gets, so that moving one never overwrites another.
Result<std::vector<Fd>> movable(const std::vector<int>& descriptors) {
  std::vector<Fd> copies;
  for (const int fd : descriptors) {
    copies.emplace_back(fcntl(fd, F_DUPFD_CLOEXEC, static_cast<int>(descriptors.size())));
    if (!copies.back().valid()) return systemError("keep a descriptor for a program");
  }
  return copies;
}

/// What a child reads as its input: a file that no path leads to, so nobody has to feed it.
Result<Fd> inputFile(const std::string& text) {
  Fd file(text.empty() ? open("/dev/null", O_RDONLY | O_CLOEXEC) : memfd_create("input", MFD_CLOEXEC));
  if (!file.valid()) return systemError("make the input of a program");
  if (text.empty()) return file;
  MUSTER_CHECK_OK(appendAndSync(file.get(), text, "input"));
  if (lseek(file.get(), 0, SEEK_SET) != 0) return systemError("make the input of a program");
  return file;
}

}  // namespace

Result<Pipe> makePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return systemError("make a pipe");
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

Result<pid_t> spawn(const ProgramSpec& program, const std::vector<int>& descriptors) {
  MUSTER_TRY(const std::vector<Fd> copies, movable(descriptors));
  const std::vector<std::string> variables = environmentOf(program);
  const std::vector<char*> command = pointers(program.command);
  const std::vector<char*> environment = pointers(variables);
  const char* folder = program.folder.empty() ? nullptr : program.folder.c_str();
  Start start{command.data(), environment.data(), &copies, folder, program.diesWithThread, getpid(), 0};
  // No handler of ours may run in the child while it shares our memory.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = vfork();
  if (pid == 0) becomeProgram(start);
  const int failed = pid < 0 ? errno : start.error;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (failed == 0) return pid;
  if (pid > 0) waitpid(pid, nullptr, 0);
  return Error{ErrorCode::kNotFound,
               fmt::format("cannot start {}: {}", program.shownName(), errnoText(failed)),
               program.command.front()};
}

Result<ChildProcess> ChildProcess::start(ProgramSpec program) {
  MUSTER_TRY(const Fd input, inputFile(program.input));
  MUSTER_TRY(Pipe out, makePipe());
  Pipe err;
  if (!program.oneOutput) {
    MUSTER_TRY(err, makePipe());
    fcntl(err.read.get(), F_SETFL, O_NONBLOCK);
  }
  fcntl(out.read.get(), F_SETFL, O_NONBLOCK);
  const int errors = program.oneOutput ? out.write.get() : err.write.get();
  MUSTER_TRY(const pid_t pid, spawn(program, {input.get(), out.write.get(), errors}));
  return ChildProcess(std::move(program), pid, std::move(out.read), std::move(err.read));
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : program_(std::move(other.program_)),
      pid_(std::exchange(other.pid_, -1)),
      out_(std::move(other.out_)),
      err_(std::move(other.err_)),
      status_(other.status_),
      ended_(other.ended_) {}

ChildProcess::~ChildProcess() {
  if (pid_ > 0 && !ended_) (void)kill();
}

void ChildProcess::Output::read(size_t most) {
  char chunk[65536];
  while (fd.valid() && text.size() <= most) {
    const ssize_t got = ::read(fd.get(), chunk, sizeof chunk);
    if (got > 0) text.append(chunk, static_cast<size_t>(got));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) fd.reset();
  }
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

void ChildProcess::await(double seconds) {
  pollfd ready[] = {{out_.fd.get(), POLLIN, 0}, {err_.fd.get(), POLLIN, 0}};
  // Closed outputs say nothing of its end: look again soon.
  const bool open = out_.fd.valid() || err_.fd.valid();
  poll(ready, 2, static_cast<int>(std::clamp(seconds, 0.0, open ? 60.0 : 0.001) * 1000));
}

Status ChildProcess::service(double seconds) {
  if (ended_) return {};
  // Read after the end has been noticed: what it printed last is then in the pipe.
  ended_ = reap();
  if (!ended_) await(seconds);
  out_.read(program_.mostOutput);
  err_.read(program_.mostOutput);
  if (out_.text.size() + err_.text.size() <= program_.mostOutput) return {};
  return Error{ErrorCode::kProtocol,
               fmt::format("{} printed more than {} KiB", program_.shownName(), program_.mostOutput >> 10),
               ""};
}

Status ChildProcess::kill() {
  const double until = systemClock().now() + kKillPatience;
  ::kill(-pid_, SIGKILL);
  while (!(ended_ = reap()) && systemClock().now() < until) usleep(2000);
  if (ended_) return {};
  return Error{
      ErrorCode::kTimeout,
      fmt::format("{} (process {}) survives KILL: it is stuck in the kernel", program_.shownName(), pid_),
      ""};
}

int ChildProcess::exitCode() const {
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
}

int ChildProcess::signal() const {
  return WIFSIGNALED(status_) ? WTERMSIG(status_) : 0;
}

Result<ChildProcess> runProgram(ProgramSpec program, double timeout) {
  MUSTER_TRY(ChildProcess child, ChildProcess::start(std::move(program)));
  const double until = systemClock().now() + timeout;
  while (!child.ended()) {
    const double left = until - systemClock().now();
    Status status = child.service(std::min(left, kLook));
    if (status.ok() && !child.ended() && left <= 0)
      status = Error{ErrorCode::kTimeout,
                     fmt::format("{} did not end within {:g} s", child.program().shownName(), timeout), ""};
    if (status.ok()) continue;
    const Status dead = child.kill();  // a program that stays is the worse news
    return (dead.ok() ? status : dead).error();
  }
  return child;
}

}  // namespace muster
