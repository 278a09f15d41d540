// SPDX-License-Identifier: Apache-2.0
// Determines the state of every node of a run.
#include "runner/kube/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "runner/core/text.h"

namespace muster::kube {
namespace {

NodeJob ended(const std::string& node, const NodeResult& result) {
  const std::string code = fmt::format("{}: exit {}", result.pod, result.exitCode);
  if (result.problem.empty()) return {node, stateOfExit(result.exitCode), code};
  // Without a record the exit code proves nothing: another program may have ended with it.
  return {node, NodeState::kLost,
          result.exitCode < 0 ? result.pod + ": " + result.problem : code + ", " + result.problem};
}

std::string detailOf(const PodInfo& pod) {
  return pod.why.empty() ? pod.name : pod.name + ": " + printable(pod.why, 300);
}

NodeJob live(const std::string& node, const PodInfo& pod) {
  return {node, pod.phase == "Pending" ? NodeState::kWaiting : NodeState::kRunning, detailOf(pod)};
}

/// A node that no pod of the last round names: `unplaced`, or its job, may still be for it.
NodeJob withoutPod(const std::string& node, const PodInfo* unplaced, const Submission& run,
                   const Snapshot& seen) {
  const JobInfo* job = nullptr;
  for (const JobInfo& one : seen.jobs)
    if ((one.node == node || one.node.empty()) && (job == nullptr || one.round >= job->round)) job = &one;
  if (unplaced != nullptr) return live(node, *unplaced);
  if (job != nullptr && !job->ended) return {node, NodeState::kWaiting, "job " + job->name};
  if (job != nullptr && job->node == node)
    return {node, NodeState::kLost,
            fmt::format("job {} ended without a pod: {}", job->name,
                        job->failure.empty() ? "its pod was removed" : printable(job->failure, 300))};
  const std::string why = unavailable(seen.nodes, node, run.gpus);
  return {node, NodeState::kMissing, why.empty() ? "no pod of this run reached it" : why};
}

}  // namespace

void leaveOutStrangers(const Submission& run, int rounds, Snapshot& seen) {
  const std::set<std::string> members(run.nodes.begin(), run.nodes.end());
  const std::vector<std::string> nodes = nodesOfPods(seen);
  std::vector<PodInfo> own;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (seen.pods[i].round <= rounds && (nodes[i].empty() || members.contains(nodes[i])))
      own.push_back(std::move(seen.pods[i]));
  }
  seen.pods = std::move(own);
}

Result<Snapshot> look(const RunStore& run) {
  const Submission& submission = run.submission();
  Snapshot seen;
  MUSTER_TRY(seen.nodes, readNodes(submission.cluster));
  MUSTER_TRY(seen.pods, readPods(submission.cluster, submission.id));
  MUSTER_TRY(seen.jobs, readJobs(submission.cluster, submission.id));
  leaveOutStrangers(submission, run.lastRound(), seen);
  return seen;
}

std::vector<std::string> nodesOfPods(const Snapshot& seen) {
  std::map<std::string, std::string> byJob;
  for (const JobInfo& job : seen.jobs) byJob.emplace(job.name, job.node);
  std::vector<std::string> nodes;
  for (const PodInfo& pod : seen.pods) {
    const auto job = byJob.find(pod.job);
    nodes.push_back(!pod.node.empty() || job == byJob.end() ? pod.node : job->second);
  }
  return nodes;
}

bool anyLive(const Snapshot& seen) {
  return std::any_of(seen.pods.begin(), seen.pods.end(), [](const PodInfo& pod) { return !pod.ended(); }) ||
         std::any_of(seen.jobs.begin(), seen.jobs.end(), [](const JobInfo& job) { return !job.ended; });
}

std::vector<NodeJob> progressOf(const Submission& run, const std::map<std::string, NodeResult>& results,
                                const Snapshot& seen) {
  std::map<std::string, const PodInfo*> busy;  // the pod of the last round that has not ended
  const PodInfo* unplaced = nullptr;           // the first one of which no node is known
  const std::vector<std::string> nodes = nodesOfPods(seen);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const PodInfo& pod = seen.pods[i];
    if (pod.ended()) continue;
    if (unplaced == nullptr && nodes[i].empty()) unplaced = &pod;
    const PodInfo*& known = busy[nodes[i]];
    if (known == nullptr || pod.round >= known->round) known = &pod;
  }
  std::vector<NodeJob> all;
  for (const std::string& node : run.nodes) {
    const auto result = results.find(node);
    if (const auto pod = busy.find(node); pod != busy.end())
      all.push_back(live(node, *pod->second));
    else if (result != results.end())
      all.push_back(ended(node, result->second));
    else
      all.push_back(withoutPod(node, unplaced, run, seen));
  }
  return all;
}

}  // namespace muster::kube
