// SPDX-License-Identifier: Apache-2.0
// Which nodes share a switch or a rack: Slurm's topology.conf (topology/tree), or lines "rack1: node[1-16]".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runner/core/result.h"

namespace muster {

/// The nodes of one line.
struct NodeGroup {
  std::string name;                ///< of the switch or rack
  std::vector<std::string> nodes;  ///< in the order of the line
  size_t line = 0;                 ///< from 1
};

/// The groups in the order of their lines; "#" begins a comment, keys are read in any case, switches that
/// have only other switches are left out. kUsage with `path`:line for anything else.
Result<std::vector<NodeGroup>> parseTopology(std::string_view text, const std::string& path);

}  // namespace muster
