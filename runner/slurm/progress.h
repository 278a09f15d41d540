// SPDX-License-Identifier: Apache-2.0
// How far a run is: one state for every node, from the run folder and from what Slurm says.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/slurm/scheduler.h"
#include "runner/slurm/submission.h"

namespace muster::slurm {

enum class NodeState {
  kAccepted,
  kRejected,    ///< exit 1
  kIncomplete,  ///< exit 3 or 5
  kFailed,      ///< exit 2, 4 or 130: the plan did not run to its end
  kRunning,
  kLost,     ///< its task began and is gone without an exit code: killed, or its node went down
  kWaiting,  ///< nobody has claimed it, and a job that could is queued
  kMissing,  ///< nobody has claimed it, and nothing is queued that could
};
const char* nodeStateName(NodeState state);

struct NodeProgress {
  std::string node;
  NodeState state = NodeState::kMissing;
  std::string detail;  ///< job, exit code, what Slurm says of the node
};

/// The state of every node of the run, in its order. Pure: reads only the run folder.
Result<std::vector<NodeProgress>> readProgress(const RunStore& run,
                                               const std::vector<SubmittedJob>& submitted,
                                               const std::vector<JobInfo>& jobs, const Nodes& known);

/// Asks Slurm, then does the same.
Result<std::vector<NodeProgress>> readProgress(const RunStore& run);

/// Whether any job of the run still waits or runs.
bool anyLive(const std::vector<JobInfo>& jobs);

/// The fleet's exit code of the last round; nothing while there is none.
std::optional<int> fleetExit(const RunStore& run);

/// "4 accepted, 1 missing": each state that occurs, in a fixed order.
std::string countText(const std::vector<NodeProgress>& nodes);

}  // namespace muster::slurm
