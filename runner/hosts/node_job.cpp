// SPDX-License-Identifier: Apache-2.0
// Names and counts the states of nodes.
#include "runner/hosts/node_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "runner/core/text.h"

namespace muster {
namespace {

constexpr std::array kStates = {NodeState::kAccepted, NodeState::kRejected, NodeState::kIncomplete,
                                NodeState::kFailed,   NodeState::kRunning,  NodeState::kLost,
                                NodeState::kWaiting,  NodeState::kMissing};

}  // namespace

const char* nodeStateName(NodeState state) {
  switch (state) {
    case NodeState::kAccepted:
      return "accepted";
    case NodeState::kRejected:
      return "rejected";
    case NodeState::kIncomplete:
      return "incomplete";
    case NodeState::kFailed:
      return "failed";
    case NodeState::kRunning:
      return "running";
    case NodeState::kLost:
      return "lost";
    case NodeState::kWaiting:
      return "waiting";
    case NodeState::kMissing:
      return "missing";
  }
  return "";
}

NodeState stateOfExit(int code) {
  switch (code) {
    case 0:
      return NodeState::kAccepted;
    case 1:
      return NodeState::kRejected;
    case 3:
    case 5:
      return NodeState::kIncomplete;
    default:
      return NodeState::kFailed;
  }
}

bool runsAgain(NodeState state, bool rejectedToo) {
  switch (state) {
    case NodeState::kMissing:
    case NodeState::kLost:
    case NodeState::kFailed:
    case NodeState::kIncomplete:
      return true;
    case NodeState::kRejected:
      return rejectedToo;
    default:
      return false;
  }
}

std::string countText(const std::vector<NodeJob>& nodes) {
  std::vector<std::string> parts;
  for (const NodeState state : kStates) {
    const auto count =
        std::count_if(nodes.begin(), nodes.end(), [&](const NodeJob& node) { return node.state == state; });
    if (count > 0) parts.push_back(fmt::format("{} {}", count, nodeStateName(state)));
  }
  return join(parts, ", ");
}

}  // namespace muster
