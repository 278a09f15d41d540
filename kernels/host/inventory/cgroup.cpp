// SPDX-License-Identifier: Apache-2.0
// Limits and throttling of this process's control groups.
#include "kernels/host/inventory/cgroup.h"

#include <algorithm>
#include <cmath>

#include "runner/core/text.h"

namespace muster {

namespace {

/// A mounted hierarchy: where it is, which of its groups the mount point shows (not "/" inside a container),
/// and what it controls.
struct Mount {
  std::string point;
  std::string shows;
  bool unified = false;
  std::vector<std::string> options;
};

/// Lines of /proc/self/mountinfo: id parent major:minor ROOT POINT options ... - TYPE SOURCE OPTIONS
std::vector<Mount> cgroupMounts(const std::string& mountinfo) {
  std::vector<Mount> mounts;
  for (const std::string& line : split(mountinfo, '\n')) {
    const std::vector<std::string> fields = split(line, ' ');
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (dash - fields.begin() < 5 || fields.end() - dash < 4) continue;
    if (dash[1] != "cgroup" && dash[1] != "cgroup2") continue;
    mounts.push_back({fields[4], fields[3], dash[1] == "cgroup2", split(dash[3], ',')});
  }
  return mounts;
}

/// The process's own group of one controller; empty `path`: not in any.
struct Membership {
  std::string path;
  bool unified = false;
};

/// Lines of /proc/self/cgroup: "1:cpu:/a" (version 1) and "0::/a" (version 2). A controller listed under
/// version 1 belongs there, else to version 2.
Membership membershipOf(const std::string& controller, const std::string& selfCgroup) {
  Membership unified;
  for (const std::string& line : split(selfCgroup, '\n')) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::vector<std::string> controllers = split(line.substr(first + 1, second - first - 1), ',');
    const std::string path = line.substr(second + 1);
    if (line.starts_with("0::")) unified = {path, true};
    if (std::find(controllers.begin(), controllers.end(), controller) != controllers.end())
      return {path, false};
  }
  return unified;
}

const Mount* mountOf(const Membership& membership, const std::string& controller,
                     const std::vector<Mount>& mounts) {
  for (const Mount& mount : mounts) {
    if (mount.unified != membership.unified) continue;
    if (mount.unified ||
        std::find(mount.options.begin(), mount.options.end(), controller) != mount.options.end())
      return &mount;
  }
  return nullptr;
}

/// The group's folder and those of its ancestors as far as the mount shows them, innermost first.
std::vector<std::string> levels(const Membership& membership, const Mount& mount, const Root& root) {
  std::string below = membership.path;
  if (mount.shows != "/" && below.starts_with(mount.shows)) below.erase(0, mount.shows.size());
  // Behind a cgroup namespace's border the path may lead outside ("/../x") or nowhere: the mount point is all
  // we see.
  if (below == "/" || below.find("/..") != std::string::npos || !root.exists(mount.point + below))
    below.clear();
  std::vector<std::string> folders;
  while (!below.empty()) {
    folders.push_back(mount.point + below);
    below.erase(below.rfind('/'));
  }
  folders.push_back(mount.point);
  return folders;
}

class Reader {
 public:
  Reader(const Root& root, CgroupState& state) : root_(root), state_(state) {}

  void cpu(const std::string& folder, bool unified) {
    quota(folder, unified);
    const std::string stat = optionalText(folder + "/cpu.stat");
    const int64_t periods = leadingInteger(fieldOf(stat, "nr_throttled"), 0);
    const double seconds =
        unified ? static_cast<double>(leadingInteger(fieldOf(stat, "throttled_usec"), 0)) * 1e-6
                : static_cast<double>(leadingInteger(fieldOf(stat, "throttled_time"), 0)) * 1e-9;
    state_.throttledPeriods =
        std::max(state_.throttledPeriods, static_cast<uint64_t>(std::max<int64_t>(0, periods)));
    state_.throttledSeconds = std::max(state_.throttledSeconds, seconds);
  }

  void memory(const std::string& folder, bool unified) {
    const std::string path = folder + (unified ? "/memory.max" : "/memory.limit_in_bytes");
    const std::string text = optionalText(path);
    if (text.empty() || text == "max") return;
    const int64_t bytes = leadingInteger(text, -1);
    if (bytes < 0) return notUnderstood("cgroup memory limit", path, text);
    constexpr int64_t kUnlimited = int64_t{1}
                                   << 60;  // version 1 writes "none" as the largest multiple of a page
    if (bytes >= kUnlimited) return;
    if (!state_.memory || static_cast<uint64_t>(bytes) < state_.memory->bytes)
      state_.memory = MemoryLimit{static_cast<uint64_t>(bytes), folder};
  }

 private:
  void quota(const std::string& folder, bool unified) {
    std::string limit = optionalText(folder + (unified ? "/cpu.max" : "/cpu.cfs_quota_us"));
    if (limit.empty() || limit.starts_with("max") || limit == "-1") return;
    std::string period = unified && limit.find(' ') != std::string::npos
                             ? limit.substr(limit.find(' ') + 1)
                             : optionalText(folder + "/cpu.cfs_period_us");
    const int64_t quotaMicros = leadingInteger(limit, -1);
    const int64_t periodMicros = leadingInteger(period, -1);
    if (quotaMicros <= 0 || periodMicros <= 0)
      return notUnderstood("cgroup cpu quota", folder, limit + " / " + period);
    const double cpus = static_cast<double>(quotaMicros) / static_cast<double>(periodMicros);
    if (state_.quota && state_.quota->cpus <= cpus) return;
    state_.quota = CpuQuota{
        cpus, folder, std::to_string(quotaMicros) + " of every " + std::to_string(periodMicros) + " us"};
  }

  /// The file's text; empty where it does not exist (the root group has no limits). Unreadable is another
  /// thing.
  std::string optionalText(const std::string& path) {
    auto text = root_.text(path);
    if (text.ok()) return *std::move(text);
    if (text.error().code != ErrorCode::kNotFound)
      state_.unreadable.push_back({"cgroup", "", text.error().text()});
    return "";
  }

  void notUnderstood(const std::string& what, const std::string& path, const std::string& text) {
    state_.unreadable.push_back({what, "", path + ": not understood: \"" + printable(text, 60) + "\""});
  }

  const Root& root_;
  CgroupState& state_;
};

}  // namespace

CgroupState readCgroups(const Root& root) {
  CgroupState state;
  Reader reader(root, state);
  const auto selfCgroup = root.text("/proc/self/cgroup");
  const auto mountinfo = root.text("/proc/self/mountinfo", 4u << 20);
  if (!selfCgroup.ok()) {
    // A kernel without control groups has no such file; anything else hides a limit from us.
    if (selfCgroup.error().code != ErrorCode::kNotFound)
      state.unreadable.push_back({"cgroup", "", selfCgroup.error().text()});
    return state;
  }
  if (!mountinfo.ok()) {
    state.unreadable.push_back({"cgroup", "", mountinfo.error().text()});
    return state;
  }
  const std::vector<Mount> mounts = cgroupMounts(*mountinfo);
  for (const std::string controller : {"cpu", "memory"}) {
    const Membership membership = membershipOf(controller, *selfCgroup);
    if (membership.path.empty()) continue;
    const Mount* mount = mountOf(membership, controller, mounts);
    if (mount == nullptr) {
      state.unreadable.push_back({"cgroup " + controller + " limit", "",
                                  "this process is in group " + printable(membership.path, 200) +
                                      ", but no folder shows that hierarchy; mount /sys/fs/cgroup"});
      continue;
    }
    const std::vector<std::string> folders = levels(membership, *mount, root);
    if (controller == "cpu") state.cpuFolder = folders.front();
    for (const std::string& folder : folders)
      controller == "cpu" ? reader.cpu(folder, mount->unified) : reader.memory(folder, mount->unified);
  }
  return state;
}

}  // namespace muster
