// SPDX-License-Identifier: Apache-2.0
// Free memory from /proc/meminfo and the memory cgroups.
#include "kernels/host/free_memory.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>

#include "runner/core/text.h"

namespace muster::host {
namespace {

/// The files of one cgroup version.
struct Files {
  const char* limit;
  const char* usage;
  const char* cache;  ///< the key in memory.stat of file pages that the kernel drops under pressure
};
constexpr Files kV2 = {"memory.max", "memory.current", "inactive_file"};
constexpr Files kV1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};

/// What one cgroup leaves; no limit, or no such files: everything.
uint64_t leftIn(const Root& root, const std::string& folder, const Files& files) {
  const auto limit = root.integer(folder + "/" + files.limit);
  const auto usage = root.integer(folder + "/" + files.usage);
  if (!limit.ok() || !usage.ok()) return std::numeric_limits<uint64_t>::max();
  int64_t cache = 0;
  if (const auto stat = root.text(folder + "/memory.stat"); stat.ok())
    cache = leadingInteger(fieldOf(*stat, files.cache), 0);
  return static_cast<uint64_t>(std::max<int64_t>(*limit - *usage + std::max<int64_t>(cache, 0), 0));
}

/// The least that `path` below `mount`, or any group above it, leaves.
uint64_t leftAbove(const Root& root, const std::string& mount, std::string path, const Files& files) {
  uint64_t left = leftIn(root, mount, files);
  while (!path.empty() && path != "/") {
    left = std::min(left, leftIn(root, mount + path, files));
    path.erase(path.rfind('/'));
  }
  return left;
}

/// One line of /proc/self/cgroup, "4:memory:/user.slice" (v1) or "0::/user.slice" (v2).
uint64_t leftByLine(const Root& root, const std::string& line) {
  const size_t first = line.find(':');
  const size_t second = line.find(':', first == std::string::npos ? first : first + 1);
  if (second == std::string::npos || line.compare(second + 1, 1, "/") != 0)
    return std::numeric_limits<uint64_t>::max();
  const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
  const std::string path = line.substr(second + 1);
  if (controllers == ",,") return leftAbove(root, "/sys/fs/cgroup", path, kV2);
  if (controllers.find(",memory,") != std::string::npos)
    return leftAbove(root, "/sys/fs/cgroup/memory", path, kV1);
  return std::numeric_limits<uint64_t>::max();
}

/// Free pages of one NUMA node and those it drops under pressure; everything where the kernel does not tell.
uint64_t leftOnNode(const Root& root, int node) {
  const std::string name = std::to_string(node);
  const auto text = root.text("/sys/devices/system/node/node" + name + "/meminfo");
  if (node < 0 || !text.ok()) return std::numeric_limits<uint64_t>::max();
  int64_t left = 0;
  for (const char* key : {"MemFree:", "Active(file):", "Inactive(file):"}) {
    const int64_t part = leadingInteger(fieldOf(*text, "Node " + name + " " + key), -1);
    if (part < 0) return std::numeric_limits<uint64_t>::max();
    left += part;
  }
  return static_cast<uint64_t>(left) * 1024;
}

}  // namespace

Result<uint64_t> freeMemory(const Root& root, int numaNode) {
  MUSTER_TRY(std::string meminfo, root.text("/proc/meminfo"));
  const int64_t available = leadingInteger(fieldOf(meminfo, "MemAvailable:"), -1);
  if (available < 0) return Error{ErrorCode::kIo, "there is no MemAvailable line", "/proc/meminfo"};
  uint64_t left = std::min(static_cast<uint64_t>(available) * 1024, leftOnNode(root, numaNode));
  const auto groups = root.text("/proc/self/cgroup");
  if (!groups.ok()) return left;  // a kernel without cgroups
  for (const std::string& line : split(*groups, '\n')) left = std::min(left, leftByLine(root, line));
  return left;
}

}  // namespace muster::host
