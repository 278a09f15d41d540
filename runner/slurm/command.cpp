// SPDX-License-Identifier: Apache-2.0
// Runs a Slurm command line tool.
#include "runner/slurm/command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "runner/core/clock.h"
#include "runner/core/files.h"
#include "runner/core/text.h"

namespace muster::slurm {
namespace {

constexpr size_t kMaxOutput = 256ull << 20;
constexpr int kPollMs = 100;

struct Pipe {
  Fd read;
  Fd write;
};

Result<Pipe> makePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return Error{ErrorCode::kIo, "cannot make a pipe: " + errnoText(errno), ""};
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

std::vector<std::string> environmentOf(const CommandSetting& setting) {
  std::vector<std::string> kept = setting.with;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view line(*entry);
    const bool dropped =
        std::any_of(setting.without.begin(), setting.without.end(),
                    [&](const std::string& prefix) { return line.substr(0, prefix.size()) == prefix; });
    if (!dropped) kept.emplace_back(line);
  }
  return kept;
}

/// What a child reads as its input: a file that no path leads to.
Result<Fd> inputFile(const std::string& text) {
  Fd file(text.empty() ? open("/dev/null", O_RDONLY | O_CLOEXEC) : memfd_create("input", MFD_CLOEXEC));
  if (!file.valid()) return Error{ErrorCode::kIo, "cannot make its input: " + errnoText(errno), ""};
  if (text.empty()) return file;
  MUSTER_CHECK_OK(appendAndSync(file.get(), text, "input"));
  if (lseek(file.get(), 0, SEEK_SET) != 0)
    return Error{ErrorCode::kIo, "cannot make its input: " + errnoText(errno), ""};
  return file;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

/// A process of its own group, with its outputs on pipes of ours.
struct Child {
  pid_t pid = -1;
  Fd out, err;
};

Result<Child> start(std::vector<std::string> argv, const CommandSetting& setting) {
  MUSTER_TRY(const Fd input, inputFile(setting.input));
  MUSTER_TRY(Pipe out, makePipe());
  MUSTER_TRY(Pipe err, makePipe());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.write.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.write.get(), STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::vector<std::string> environment = environmentOf(setting);
  Child child;
  const int error = posix_spawnp(&child.pid, argv.front().c_str(), &actions, &attributes,
                                 pointers(argv).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0)
    return Error{
        ErrorCode::kNotFound,
        fmt::format("cannot start it: {}; is Slurm's client installed and in PATH?", errnoText(error)),
        argv.front()};
  child.out = std::move(out.read);
  child.err = std::move(err.read);
  return child;
}

/// Reads what is there; closes the descriptor at its end.
void drain(Fd& fd, std::string& into) {
  std::array<char, 65536> buffer;
  const ssize_t n = read(fd.get(), buffer.data(), buffer.size());
  if (n > 0) into.append(buffer.data(), static_cast<size_t>(n));
  if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) fd.reset();
}

/// Moves bytes until both outputs have ended. kTimeout, kProtocol.
Status listen(Child& child, double deadline, CommandResult& result) {
  while (child.out.valid() || child.err.valid()) {
    if (systemClock().now() > deadline) return Error{ErrorCode::kTimeout, "it did not end in time", ""};
    pollfd fds[] = {{child.out.get(), POLLIN, 0}, {child.err.get(), POLLIN, 0}};
    if (poll(fds, 2, kPollMs) <= 0) continue;
    if (fds[0].revents != 0) drain(child.out, result.out);
    if (fds[1].revents != 0) drain(child.err, result.err);
    if (result.out.size() + result.err.size() > kMaxOutput)
      return Error{ErrorCode::kProtocol, "it wrote more than 256 MiB", ""};
  }
  return {};
}

/// Waits for the end without waiting past the deadline.
Status reap(pid_t pid, double deadline, CommandResult& result) {
  int status = 0;
  for (;;) {
    const pid_t ended = waitpid(pid, &status, WNOHANG);
    if (ended == pid) break;
    if (ended < 0 && errno != EINTR) return Error{ErrorCode::kIo, "cannot wait: " + errnoText(errno), ""};
    if (systemClock().now() > deadline) return Error{ErrorCode::kTimeout, "it did not end in time", ""};
    usleep(2000);
  }
  if (WIFEXITED(status)) result.exitCode = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  return {};
}

}  // namespace

Result<CommandResult> runCommand(const std::vector<std::string>& argv, double timeout,
                                 const CommandSetting& setting) {
  MUSTER_TRY(Child child, start(argv, setting));
  const double deadline = systemClock().now() + timeout;
  CommandResult result;
  Status status = listen(child, deadline, result);
  if (status.ok()) status = reap(child.pid, deadline, result);
  if (status.ok()) return result;
  kill(-child.pid, SIGKILL);
  waitpid(child.pid, nullptr, 0);
  Error error = std::move(status).error();
  error.message = fmt::format("{} after {} s: {}", error.message, timeout, join(argv, " ").substr(0, 200));
  return error;
}

}  // namespace muster::slurm
