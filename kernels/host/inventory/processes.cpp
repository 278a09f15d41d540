// SPDX-License-Identifier: Apache-2.0
// Who keeps the processors busy beside us: CPU time of every process between two looks.
#include "kernels/host/inventory/processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <set>

#include "runner/core/clock.h"
#include "runner/core/text.h"
#include "runner/system/files.h"

namespace muster {

namespace {

constexpr double kTick = 0.01;                  // USER_HZ
constexpr double kBurst = 0.005;                // seconds that an idle daemon may take when it wakes
constexpr double kShortestLook = 0.008;         // seconds; with the clock
constexpr double kShortestTickedLook = 0.015;   // seconds; below, ticks say nothing
constexpr uint64_t kKernelThread = 0x00200000;  // PF_KTHREAD

/// muster itself, muster-host, and what its two processes call themselves: muster-guard and muster-rank.
bool isMuster(const std::string& name) {
  return name == "muster" || name.starts_with("muster-");
}

double secondsOf(uint64_t ticks) {
  return ticks > 1 ? static_cast<double>(ticks - 1) * kTick : 0;
}

}  // namespace

std::optional<double> processCpuSeconds(int pid) {
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) return std::nullopt;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

CpuWatch::CpuWatch(Root root, int self, ProcessClock clock, std::vector<int> allowed)
    : root_(std::move(root)), self_(self), clock_(std::move(clock)), allowed_(std::move(allowed)) {}

double CpuWatch::Use::busySeconds() const {
  if (!seconds) return secondsOf(own + children);
  return std::max(0.0, *seconds - kBurst) + secondsOf(children);
}

/// pid (comm) state ppid ... flags(9) ... utime(14) stime(15) cutime(16) cstime(17) ... starttime(22) ...
/// processor(39); comm may hold anything, parentheses and newlines too, so fields are counted from the last
/// parenthesis.
bool CpuWatch::parseStat(std::string_view text, uint64_t& started, Process& process) {
  const size_t open = text.find('(');
  const size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return false;
  process.name = printable(text.substr(open + 1, close - open - 1), 64);
  std::array<uint64_t, 40> fields{};
  const char* at = text.data() + close + 1;
  const char* const end = text.data() + text.size();
  for (size_t number = 3; number < fields.size(); ++number) {
    while (at != end && *at == ' ') ++at;
    const char* const stop = std::find(at, end, ' ');
    if (at == end) return false;
    if (number > 3) std::from_chars(at, stop, fields[number]);  // negative fields (tty's group) stay 0
    at = stop;
  }
  process.parent = static_cast<int>(fields[4]);
  process.kernel = (fields[9] & kKernelThread) != 0;
  process.ticks = fields[14] + fields[15];
  process.reaped = fields[16] + fields[17];
  process.cpu = static_cast<int>(fields[39]);
  started = fields[22];
  return true;
}

Result<CpuWatch::Table> CpuWatch::readProcesses() const {
  const std::string folder = root_.prefix() + "/proc";
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(folder.c_str()), closedir);
  if (!dir) return Error{ErrorCode::kIo, errnoText(errno), "/proc"};
  Table table;
  char text[1024];
  while (const dirent* entry = readdir(dir.get())) {
    const int pid = static_cast<int>(leadingInteger(entry->d_name, 0));
    if (pid <= 0) continue;
    const std::string name = std::string(entry->d_name) + "/stat";
    const Fd file(openat(dirfd(dir.get()), name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    const ssize_t got = file.valid() ? read(file.get(), text, sizeof text) : 0;
    uint64_t started = 0;
    Process process;
    // A process that ends while we read is no error: its time shows up as unseen.
    if (got <= 0 || !parseStat({text, static_cast<size_t>(got)}, started, process)) continue;
    if (clock_) process.seconds = clock_(pid);
    table.emplace(Key{pid, started}, std::move(process));
  }
  if (table.empty() || table.begin()->first.first != 1)
    return Error{ErrorCode::kIo,
                 "other users' processes are hidden (hidepid), so a busy one could not be seen; run as root",
                 "/proc"};
  return table;
}

std::map<int, uint64_t> CpuWatch::knownOfEnded(const Table& now) const {
  std::map<int, std::pair<int, bool>> earlier;  // pid -> parent, whether it is still there
  for (const auto& [key, process] : last_) earlier[key.first] = {process.parent, now.count(key) != 0};

  std::map<int, uint64_t> known;
  for (const auto& [key, process] : last_) {
    int heir = key.first;
    for (size_t step = 0; step < earlier.size(); ++step) {
      const auto at = earlier.find(heir);
      if (at == earlier.end() || at->second.second) break;
      heir = at->second.first;
    }
    if (heir != key.first) known[heir] += process.ticks + process.reaped;
  }
  return known;
}

std::map<CpuWatch::Key, CpuWatch::Use> CpuWatch::ticksUsed(const Table& now) const {
  const std::map<int, uint64_t> known = knownOfEnded(now);
  std::map<Key, Use> used;
  for (const auto& [key, process] : now) {
    const auto found = last_.find(key);
    const Process before = found == last_.end() ? Process{} : found->second;
    const auto ended = known.find(key.first);
    const uint64_t old = before.reaped + (ended == known.end() ? 0 : ended->second);
    Use& use = used[key];
    use.own = process.ticks - std::min(process.ticks, before.ticks);
    use.children = process.reaped - std::min(process.reaped, old);
    if (process.seconds && (found == last_.end() || before.seconds))
      use.seconds = *process.seconds - before.seconds.value_or(0);
  }
  return used;
}

/// schedstat: time on a processor and time of waiting for one, in nanoseconds, and a count. Kernels without
/// it show no waits.
std::map<int, double> CpuWatch::readWaits(const std::set<int>& processes) const {
  std::map<int, double> waits;
  for (const int pid : processes) {
    const std::string folder = root_.prefix() + "/proc/" + std::to_string(pid) + "/task";
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(folder.c_str()), closedir);
    while (const dirent* entry = dir ? readdir(dir.get()) : nullptr) {
      const int thread = static_cast<int>(leadingInteger(entry->d_name, 0));
      const std::string name = std::string(entry->d_name) + "/schedstat";
      const Fd file(thread > 0 ? openat(dirfd(dir.get()), name.c_str(), O_RDONLY | O_CLOEXEC) : -1);
      char text[128];
      const ssize_t got = file.valid() ? read(file.get(), text, sizeof text) : 0;
      if (got <= 0) continue;
      const std::string_view fields(text, static_cast<size_t>(got));
      if (const size_t space = fields.find(' '); space != std::string_view::npos)
        waits[thread] = static_cast<double>(leadingInteger(fields.substr(space + 1), 0)) * 1e-9;
    }
  }
  return waits;
}

double CpuWatch::longestWait(const std::map<int, double>& waits) const {
  double longest = 0;
  for (const auto& [thread, waited] : waits) {
    const auto before = waits_.find(thread);
    const bool known = before != waits_.end() && before->second <= waited;  // numbers are used again
    longest = std::max(longest, waited - (known ? before->second : 0));
  }
  return longest;
}

CpuWatch::OwnProcesses CpuWatch::ownOf(const Table& now) const {
  std::map<int, const Process*> processes;
  for (const auto& [key, process] : now) processes[key.first] = &process;
  std::set<int> own{self_};
  int outermost = self_;
  for (auto at = processes.find(self_); at != processes.end() && own.size() < 1000;
       at = processes.find(at->second->parent)) {
    own.insert(at->first);
    if (isMuster(at->second->name)) outermost = at->first;
  }
  // Parents of later processes may have smaller or larger pids, so go on until nothing is added.
  std::set<int> descendants{outermost};
  for (size_t before = 0; before != descendants.size();) {
    before = descendants.size();
    for (const auto& [pid, process] : processes)
      if (descendants.count(process->parent) != 0) descendants.insert(pid);
  }
  own.insert(descendants.begin(), descendants.end());
  return {std::move(own), std::move(descendants)};
}

CpuUse CpuWatch::compare(const Table& now, const CpuTimes& times, const std::set<int>& own,
                         double seconds) const {
  const std::map<Key, Use> used = ticksUsed(now);

  CpuUse use;
  use.seconds = seconds;
  double seen = 0;
  for (const auto& [key, process] : now) {
    const Use& part = used.at(key);
    seen += static_cast<double>(part.own + part.children) * kTick / seconds;
    const double share = part.busySeconds() / seconds;
    if (own.count(key.first) != 0) continue;
    // A kernel thread may work for us.
    const bool here = allowed_.empty() || std::binary_search(allowed_.begin(), allowed_.end(), process.cpu);
    if (here && !process.kernel) use.foreign += share;
    if (share <= use.busiest) continue;
    use.busiest = share;
    use.process = process.name + "(" + std::to_string(key.first) + ")";
    use.text = process.name + (process.kernel ? " (kernel thread " : " (pid ") + std::to_string(key.first) +
               ") " +
               (part.children > part.own ? "through its children" : "on cpu " + std::to_string(process.cpu));
  }
  const double busy = times.busy - lastTimes_.busy;
  const double steal = times.steal - lastTimes_.steal;
  const double all = busy + steal + times.idle - lastTimes_.idle;
  const double interrupts = times.interrupts - lastTimes_.interrupts;
  use.unseen = std::max(0.0, (busy - interrupts - kTick) / seconds - seen);
  if (all > 0) use.utilization = std::clamp(busy / all, 0.0, 1.0);
  if (all > 0 && steal > 1.5 * kTick) use.steal = std::min((steal - kTick) / all, 1.0);
  return use;
}

Result<std::optional<CpuUse>> CpuWatch::look() {
  const double shortest = clock_ && clock_(self_) ? kShortestLook : kShortestTickedLook;
  if (lastLook_ >= 0 && systemClock().now() - lastLook_ < shortest) return std::optional<CpuUse>();
  MUSTER_TRY(Table now, readProcesses());
  MUSTER_TRY(const CpuTimes times, readCpuTimes(root_));
  const double time = systemClock().now();
  std::optional<CpuUse> use;
  const OwnProcesses own = ownOf(now);
  std::map<int, double> waits = readWaits(own.run);
  if (lastLook_ >= 0 && time > lastLook_) {
    use = compare(now, times, own.all, time - lastLook_);
    use->waited = std::min(1.0, longestWait(waits) / use->seconds);
  }
  waits_ = std::move(waits);
  last_ = std::move(now);
  lastTimes_ = times;
  lastLook_ = time;
  return use;
}

}  // namespace muster
