// SPDX-License-Identifier: Apache-2.0
// How far each node of a run on many nodes is, whichever scheduler runs it.
#pragma once

#include <string>
#include <vector>

namespace muster {

enum class NodeState {
  kAccepted,
  kRejected,    ///< exit 1
  kIncomplete,  ///< exit 3 or 5
  kFailed,      ///< exit 2, 4 or 130: the plan did not run to its end
  kRunning,
  kLost,     ///< its job began and is gone without a result: killed, evicted, or its node went down
  kWaiting,  ///< it has not begun, and a job that could run it is queued
  kMissing,  ///< it has not begun, and nothing is queued that could run it
};
const char* nodeStateName(NodeState state);

struct NodeJob {
  std::string node;
  NodeState state = NodeState::kMissing;
  std::string detail;  ///< job, exit code, what the scheduler says of the node
};

/// What an exit code of `muster run` says of its node.
NodeState stateOfExit(int code);

/// Whether a resume runs the node again. A rejected one has its verdict: running it until it passes would be
/// no acceptance.
bool runsAgain(NodeState state, bool rejectedToo);

/// "4 accepted, 1 missing": each state that occurs, in a fixed order.
std::string countText(const std::vector<NodeJob>& nodes);

}  // namespace muster
