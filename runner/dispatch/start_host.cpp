// SPDX-License-Identifier: Apache-2.0
// See start_host.h.
#include "runner/dispatch/start_host.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>

#include "runner/core/clock.h"
#include "runner/system/child_process.h"

namespace muster {
namespace {

const std::string kMarkerName = "MUSTER_HOST_ID=";

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
  const Fd input(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!input.valid()) return Error{ErrorCode::kInternal, "cannot open /dev/null: " + errnoText(errno), ""};
  for (const Fd* fd : {&frames.read, &output.read, &report.read}) fcntl(fd->get(), F_SETFL, O_NONBLOCK);

  std::vector<int> descriptors = {input.get(),        output.write.get(),  output.write.get(),
                                  frames.write.get(), lifeline.read.get(), report.write.get()};
  if (store.valid()) descriptors.push_back(store.get());
  SpawnedHost host;
  host.marker = newMarker();
  Result<pid_t> pid =
      spawn({.command = command, .name = "muster-host", .with = {kMarkerName + host.marker}}, descriptors);
  if (!pid.ok()) return Error{ErrorCode::kInternal, pid.error().message, command[0]};
  host.pid = *pid;
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
    if (killOnce(kMarkerName + marker) == 0) return true;
    poll(nullptr, 0, 10);
  }
  return false;
}

}  // namespace muster
