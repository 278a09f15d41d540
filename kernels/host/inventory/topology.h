// SPDX-License-Identifier: Apache-2.0
// NUMA nodes, cores and caches of the machine, from hwloc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/core/result.h"

namespace muster {

/// One NUMA node with the processors of it that this process may run on (at least one).
struct NumaNode {
  int index = 0;          ///< the operating system's number
  std::vector<int> cpus;  ///< allowed processors
  int cores = 0;          ///< physical cores among them
  uint64_t memoryBytes = 0;
  uint64_t cacheBytes = 0;  ///< last-level caches that these processors share, summed
};

struct Topology {
  std::vector<NumaNode> nodes;
  int packages = 0;
};

/// The machine, narrowed to the processors `allowed`. With `synthetic` not empty, hwloc's description of a
/// made-up machine in its place ("package:2 numa:1 l3:1 core:4 pu:2").
Result<Topology> readTopology(const std::vector<int>& allowed, const std::string& synthetic = "");

}  // namespace muster
