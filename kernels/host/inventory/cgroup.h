// SPDX-License-Identifier: Apache-2.0
// Limits and throttling of this process's control groups, version 1, version 2 and both at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/host/inventory/root.h"
#include "kernels/interfaces/inventory.h"

namespace muster {

/// A quota on CPU time: `cpus` processors' worth in each period.
struct CpuQuota {
  double cpus = 0;
  std::string folder;  ///< the control group that sets it
  std::string text;    ///< "50000 of every 100000 us"
};

/// A limit on memory.
struct MemoryLimit {
  uint64_t bytes = 0;
  std::string folder;
};

/// What the process's own group and its ancestors impose. A group inside limits what is inside it, so the
/// tightest of all levels counts.
struct CgroupState {
  std::optional<CpuQuota> quota;      ///< the tightest; none: unlimited
  std::optional<MemoryLimit> memory;  ///< the tightest; none: unlimited
  double throttledSeconds = 0;        ///< cumulative, of the level that was throttled most
  uint64_t throttledPeriods = 0;      ///< cumulative
  std::string cpuFolder;              ///< the process's own group of the cpu controller; empty: it has none
  std::vector<UnreadableSource> unreadable;
};

CgroupState readCgroups(const Root& root);

}  // namespace muster
