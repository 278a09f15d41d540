// SPDX-License-Identifier: Apache-2.0
// The storage of a scenario's nodes ([storage]): what it reaches, and the faults planted in it.
#pragma once

#include <limits>
#include <vector>

#include "runner/core/toml/toml_table.h"

namespace muster::sim {

/// A fault of one node's storage.
struct StorageFault {
  bool apart = false;  ///< the node sees other files than the rest; else it is slow
  int node = -1;       ///< node rank; -1: on every node
  double from = 0;     ///< virtual seconds
  double until = std::numeric_limits<double>::infinity();
  double factor = 1;  ///< share of full speed that is left
};

/// The storage of one node. Rates are of long runs at a queue depth that saturates it.
struct StorageModel {
  double readBandwidth = 0;  ///< B/s, sequential; 0: the nodes have no storage
  double writeBandwidth = 0;
  double readOperations = 0;  ///< per second, random
  double writeOperations = 0;
  double fileRate = 0;   ///< small files read per second, in shuffled order
  double noise = 0.01;   ///< sigma of one run, as a share
  double spread = 0.02;  ///< sigma of the speed of nodes, as a share
  std::vector<StorageFault> faults;
};

/// Reads the table `storage` of a scenario, if there is one; `nodes` as in readFault().
void readStorage(TomlTable& root, StorageModel& out, int nodes);

}  // namespace muster::sim
