// SPDX-License-Identifier: Apache-2.0
// What is submitted when. A round is an array job over all nodes (or jobs pinned to some), then jobs pinned
// to the nodes that no task met, then the job of cluster-scope stages; a fleet job follows each of these
// steps.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "runner/slurm/batch.h"
#include "runner/slurm/scheduler.h"
#include "runner/slurm/submission.h"

namespace muster::slurm {

/// Arrays for `count` nodes, each below MaxArraySize; `others` are nodes that no task may use.
std::vector<JobRequest> arrayRequests(const JobSettings& jobs, size_t count,
                                      const std::vector<std::string>& others, int maxArraySize, int round);

/// What each of `nodes` that cannot run anything now is: its name and Slurm's words. A node that Slurm does
/// not know is a mistake of the user (kUsage).
Result<std::vector<std::pair<std::string, std::string>>> unavailable(const std::vector<std::string>& nodes,
                                                                     const Nodes& known);

/// Begins the run: arrays over the available nodes (or the cluster job, where the plan has no other stages)
/// and the fleet job after them. With no node available just the fleet job. When one of them cannot be
/// submitted, those before it are cancelled.
Status beginRun(const RunStore& run, const Nodes& known);

/// The lines of expect.txt: every node, with what Slurm says of those that have no result and get no work.
/// Pure but for the run folder's exit codes.
std::string expectText(const RunStore& run, const Nodes& known);

/// Begins another round for `nodes`, each with a job pinned to it: all or nothing, as above.
Status beginRound(const RunStore& run, const std::vector<std::string>& nodes, int round);

/// Jobs of this run that it does not list, because `sbatch` could not tell their numbers: one that has
/// claimed its node is listed from now on, any other is cancelled. Returns those listed ones that still run.
Result<std::set<std::string>> takeStrays(const RunStore& run);

/// Puts back what was set aside for a round in which no job was submitted for it: Slurm refused it, or
/// whoever submitted was killed. What another job has claimed since stays as it is.
Status putBack(const RunStore& run);

/// The number of a round that begins now: beyond the last one, and nothing was set aside for it before.
int nextRound(const RunStore& run, const std::vector<SubmittedJob>& jobs);

/// What the fleet job does first: submits what is missing in this round, and a fleet job after it. False when
/// there is nothing left to submit. kTimeout when Slurm takes no more jobs yet, or does not answer: try
/// again.
Result<bool> fillRound(const RunStore& run);

/// The number of the last round.
int lastRound(const std::vector<SubmittedJob>& jobs);

}  // namespace muster::slurm
