// SPDX-License-Identifier: Apache-2.0
// Who takes part: the nodes of a cluster with a rank for each rail, or the ranks of one node.
#pragma once

#include <string>
#include <vector>

#include "kernels/interfaces/communicator.h"
#include "runner/core/json.h"

namespace muster::ring {

/// Where this rank is, from context_json.
struct Place {
  std::string scope;
  int rank = 0;
  int worldSize = 1;
  int localRank = 0;
  int localSize = 1;
  int node = 0;
  int nodes = 1;
  std::string nodeName;
  std::vector<std::string> nodeNames;  ///< by rank, where the runner tells them
  std::vector<double> nodeRanks;       ///< how many of the group each node has, where the runner tells it
  std::string device;
};
Result<Place> placeOf(const Json& context);

/// The members of the ring: nodes where the group spans several, else its ranks. Rail r of a node is its rank
/// r.
struct Members {
  std::vector<std::string> names;
  bool areNodes = false;                ///< then a member's number is its node's in the run
  std::vector<std::vector<int>> ranks;  ///< [member][rail]
  std::vector<int> machines;            ///< of each member, by number; members that share one share its load
  int own = 0;                          ///< this rank's member
  int ownRail = 0;

  [[nodiscard]] int count() const { return static_cast<int>(ranks.size()); }
  [[nodiscard]] int rails() const { return ranks.empty() ? 0 : static_cast<int>(ranks.front().size()); }
};

/// All ranks of the group call it. Nodes with different numbers of ranks are an error that names them.
Result<Members> gatherMembers(const Place& place, Communicator& communicator);

}  // namespace muster::ring
