// SPDX-License-Identifier: Apache-2.0
// See start_host.h. posix_spawn shares our memory until exec, so a start costs the same however large the
// runner is.
#include "runner/dispatch/start_host.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstring>
#include <memory>

#include "runner/core/clock.h"

namespace muster {
namespace {

constexpr int kFirstFreeFd =
    10;                      // above all that the child gets, so that moving one never overwrites another
constexpr int kHostFds = 6;  // 0 to 5
constexpr int kStoreFd = 6;

struct Pipe {
  Fd read;
  Fd write;
};

Error systemError(const std::string& what) {
  return {ErrorCode::kInternal, fmt::format("cannot {}: {}", what, errnoText(errno)), ""};
}

Result<Pipe> makePipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return systemError("make a pipe for muster-host");
  const Fd low[2] = {Fd(fds[0]), Fd(fds[1])};
  Pipe pipe{Fd(fcntl(fds[0], F_DUPFD_CLOEXEC, kFirstFreeFd)),
            Fd(fcntl(fds[1], F_DUPFD_CLOEXEC, kFirstFreeFd))};
  if (!pipe.read.valid() || !pipe.write.valid()) return systemError("make a pipe for muster-host");
  return pipe;
}

/// posix_spawn's file actions and attributes, freed with the object.
class SpawnPlan {
 public:
  SpawnPlan() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  void give(const Fd& fd, int as) { posix_spawn_file_actions_adddup2(&actions_, fd.get(), as); }
  void closeAllFrom(int first) { posix_spawn_file_actions_addclosefrom_np(&actions_, first); }

  Result<pid_t> spawn(const std::vector<std::string>& command, const std::string& extraVariable) {
    std::vector<char*> argv;
    argv.reserve(command.size() + 1);
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    std::vector<char*> environment;
    const size_t nameLength = extraVariable.find('=') + 1;
    for (char** entry = environ; *entry != nullptr; ++entry)
      if (strncmp(*entry, extraVariable.c_str(), nameLength) != 0) environment.push_back(*entry);
    environment.push_back(const_cast<char*>(extraVariable.c_str()));
    environment.push_back(nullptr);
    pid_t pid = -1;
    const int failed = posix_spawn(&pid, argv[0], &actions_, &attributes_, argv.data(), environment.data());
    if (failed != 0)
      return Error{ErrorCode::kInternal, "cannot start muster-host: " + errnoText(failed), command[0]};
    return pid;
  }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

/// The limit of open files that this process was started with. A store may raise it for itself; ranks are to
/// see, and to tell, the machine's own.
const rlimit kFilesAtStart = [] {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit;
}();

std::string newMarker() {
  static std::atomic<unsigned> count{0};
  return fmt::format("{}-{:.6f}-{}", getpid(), systemClock().now(), ++count);
}

/// Whether process `pid` has `variable` in its environment; kernel threads and strangers are not readable.
bool hasVariable(const char* pid, const std::string& variable) {
  const Fd file(open(fmt::format("/proc/{}/environ", pid).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return false;
  std::string environment;
  char buffer[8192];
  ssize_t n = 0;
  while ((n = read(file.get(), buffer, sizeof buffer)) > 0 && environment.size() < (4u << 20))
    environment.append(buffer, static_cast<size_t>(n));
  return (std::string(1, '\0') + environment).find('\0' + variable + '\0') != std::string::npos;
}

int killOnce(const std::string& variable) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc"), closedir);
  int killed = 0;
  while (const dirent* item = folder ? readdir(folder.get()) : nullptr) {
    if (item->d_name[0] < '1' || item->d_name[0] > '9' || !hasVariable(item->d_name, variable)) continue;
    const pid_t pid = static_cast<pid_t>(std::stol(item->d_name));
    if (pid != getpid() && kill(pid, SIGKILL) == 0) ++killed;
  }
  return killed;
}

}  // namespace

Result<SpawnedHost> spawnHost(const std::vector<std::string>& command, const Fd& store) {
  MUSTER_TRY(Pipe frames, makePipe());
  MUSTER_TRY(Pipe output, makePipe());
  MUSTER_TRY(Pipe report, makePipe());
  MUSTER_TRY(Pipe lifeline, makePipe());
  const Fd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Fd input(fcntl(null.get(), F_DUPFD_CLOEXEC, kFirstFreeFd));
  if (!input.valid()) return systemError("open /dev/null");
  for (const Fd* fd : {&frames.read, &output.read, &report.read}) fcntl(fd->get(), F_SETFL, O_NONBLOCK);

  SpawnPlan plan;
  plan.give(input, 0);
  plan.give(output.write, 1);
  plan.give(output.write, 2);
  plan.give(frames.write, 3);
  plan.give(lifeline.read, 4);
  plan.give(report.write, 5);
  const Fd shared(store.valid() ? fcntl(store.get(), F_DUPFD_CLOEXEC, kFirstFreeFd) : -1);
  if (store.valid() && !shared.valid()) return systemError("keep a connection to the store");
  if (store.valid()) plan.give(shared, kStoreFd);
  plan.closeAllFrom(store.valid() ? kStoreFd + 1 : kHostFds);
  SpawnedHost host;
  host.marker = newMarker();
  MUSTER_TRY(host.pid, plan.spawn(command, "MUSTER_HOST_ID=" + host.marker));
  prlimit(host.pid, RLIMIT_NOFILE, &kFilesAtStart, nullptr);
  host.frames = std::move(frames.read);
  host.output = std::move(output.read);
  host.report = std::move(report.read);
  host.lifeline = std::move(lifeline.write);
  return host;
}

bool killMarked(const std::string& marker) {
  // Killed processes stay visible for a moment; forking ones need more than one pass.
  for (int pass = 0; pass < 200; ++pass) {
    if (killOnce("MUSTER_HOST_ID=" + marker) == 0) return true;
    poll(nullptr, 0, 10);
  }
  return false;
}

std::string shellCommand(const std::vector<std::string>& command) {
  std::string line;
  for (const std::string& word : command) {
    const bool plain = !word.empty() && word.find_first_not_of(
                                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                            "0123456789_-./=:,+@%") == std::string::npos;
    if (!line.empty()) line += ' ';
    if (plain) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

}  // namespace muster
