// SPDX-License-Identifier: Apache-2.0
// How a fleet record came about by delta acceptance: what it builds upon, and which nodes were taken from
// which run.
#pragma once

#include <string>
#include <vector>

#include "runner/core/json.h"

namespace muster::fleet {

struct FleetDelta {
  /// A record that was measured after the replacement.
  struct Run {
    std::string path;  ///< where it lay
    std::string id;
    double started = 0;  ///< seconds since 1970
  };
  struct Node {
    std::string node;
    std::vector<Run> runs;
    std::vector<std::string> changes;  ///< "gpu3: S3 replaced by S9"; empty: nothing was replaced
  };
  std::string since;         ///< folder of the accepted fleet
  std::string sinceSha256;   ///< of its fleet.json
  double sinceFinished = 0;  ///< seconds since 1970
  size_t kept = 0;           ///< nodes that stay as they were accepted
  std::vector<Node> nodes;   ///< those that were taken from new runs
};

Json toJson(const FleetDelta& delta);

}  // namespace muster::fleet
