// SPDX-License-Identifier: Apache-2.0
// How far a run is: one state for every node, from the run folder and from what Slurm says.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/hosts/node_job.h"
#include "runner/slurm/scheduler.h"
#include "runner/slurm/submission.h"

namespace muster::slurm {

using muster::countText;
using muster::NodeJob;
using muster::NodeState;
using muster::nodeStateName;

/// The state of every node of the run, in its order. Pure: reads only the run folder.
Result<std::vector<NodeJob>> readProgress(const RunStore& run, const std::vector<SubmittedJob>& submitted,
                                          const std::vector<JobInfo>& jobs, const Nodes& known);

/// Asks Slurm, then does the same.
Result<std::vector<NodeJob>> readProgress(const RunStore& run);

/// Nodes that the last cluster job rejected, or in whose part something had failed when it was killed.
std::vector<std::string> rejectedInCluster(const RunStore& run);

/// Whether any job of the run still waits or runs.
bool anyLive(const std::vector<JobInfo>& jobs);

/// The fleet's exit code of the last round; nothing while there is none.
std::optional<int> fleetExit(const RunStore& run);

}  // namespace muster::slurm
