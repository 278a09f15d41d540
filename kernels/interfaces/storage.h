// SPDX-License-Identifier: Apache-2.0
// Loads on a node's storage and what they reach, and the storage of a simulated node.
#pragma once

#include <cstdint>
#include <vector>

namespace muster {

/// One timed load on a file.
struct StorageLoad {
  bool writes = false;
  bool random = false;
  uint64_t blockSize = 1 << 20;
  int queueDepth = 32;
  double seconds = 10;
};

/// What it reached. Latencies are of completions, in seconds.
struct StorageFigure {
  double bandwidth = 0;   ///< B/s
  double operations = 0;  ///< per second
  double latencyP50 = 0, latencyP99 = 0, latencyP999 = 0;
};

/// What a simulated node has in place of a file system: the storage plugin itself measures real ones.
class SimulatedStorage {
 public:
  virtual ~SimulatedStorage() = default;
  /// Virtual seconds.
  [[nodiscard]] virtual double now() const = 0;
  virtual StorageFigure run(const StorageLoad& load) = 0;
  /// Files of `bytes` each read per second.
  virtual double loadFiles(uint64_t files, uint64_t bytes) = 0;
  /// The nodes that see other files than the rest.
  [[nodiscard]] virtual std::vector<int> nodesApart() const = 0;
};

}  // namespace muster
