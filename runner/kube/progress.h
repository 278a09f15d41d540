// SPDX-License-Identifier: Apache-2.0
// One state for every node of a run on Kubernetes, from its results and from what the API says.
#pragma once

#include <map>
#include <vector>

#include "runner/hosts/node_job.h"
#include "runner/kube/objects.h"
#include "runner/kube/run_store.h"

namespace muster::kube {

/// What the API says of a run at one moment.
struct Snapshot {
  Nodes nodes;
  std::vector<PodInfo> pods;
  std::vector<JobInfo> jobs;
};
/// Without what has the run's label and is no part of it.
Result<Snapshot> look(const RunStore& run);

/// Leaves out pods that are on no node of the run, or in none of its first `rounds` rounds: who may create
/// pods may label them.
void leaveOutStrangers(const Submission& run, int rounds, Snapshot& seen);

/// For each pod, in their order, the node that it runs on or, if its job is pinned, will run on; empty: not
/// known yet.
std::vector<std::string> nodesOfPods(const Snapshot& seen);

/// Whether a pod or job of the run still waits or runs.
bool anyLive(const Snapshot& seen);

/// The state of every node, each once, in the run's order. Pure.
std::vector<NodeJob> progressOf(const Submission& run, const std::map<std::string, NodeResult>& results,
                                const Snapshot& seen);

}  // namespace muster::kube
