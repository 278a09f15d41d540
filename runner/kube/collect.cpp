// SPDX-License-Identifier: Apache-2.0
// Reads logs, decides which record of a node counts.
#include "runner/kube/collect.h"

#include <fmt/format.h>

#include <algorithm>

#include "runner/core/text.h"
#include "runner/kube/record_log.h"

namespace muster::kube {
namespace {

/// A rejection outweighs everything, and only an accepted pod alone accepts.
int weight(int exitCode) {
  return exitCode == 1 ? 2 : exitCode == 0 ? 0 : 1;
}

/// The pods of the last round that have ended, by their node; of several the worst.
std::map<std::string, const PodInfo*> endedPods(const Snapshot& seen) {
  std::map<std::string, const PodInfo*> worst;
  const std::vector<std::string> nodes = nodesOfPods(seen);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const PodInfo* const pod = &seen.pods[i];
    const std::string& node = nodes[i];
    if (!pod->ended() || node.empty()) continue;
    const PodInfo*& known = worst[node];
    if (known == nullptr || pod->round > known->round ||
        (pod->round == known->round && weight(pod->exitCode) > weight(known->exitCode)))
      known = pod;
  }
  return worst;
}

/// The record in a pod's log, if it is what Kubernetes says of the pod.
Result<std::string> recordOf(const Submission& run, const PodInfo& pod, const RecordCheck& check) {
  if (pod.exitCode < 0) return Error{ErrorCode::kProtocol, "its container did not run to its end", ""};
  MUSTER_TRY(const std::string log, podLog(run.cluster, pod.name));
  MUSTER_TRY(LoggedRecord record, recordInLog(log));
  if (record.node != pod.node)
    return Error{
        ErrorCode::kProtocol,
        fmt::format("the record is of {}, but the pod ran on {}", printable(record.node, 80), pod.node), ""};
  if (record.exitCode != pod.exitCode)
    return Error{ErrorCode::kProtocol,
                 fmt::format("the log says exit {}, Kubernetes says {}", record.exitCode, pod.exitCode), ""};
  MUSTER_TRY(const Json json, parseJson(record.text));
  if (const Json& code = valueAt(json, "/exit_code"); code != pod.exitCode)
    return Error{
        ErrorCode::kProtocol,
        fmt::format("the record says exit {}, Kubernetes says {}", printable(code.dump(), 20), pod.exitCode),
        ""};
  MUSTER_CHECK_OK(check(pod.node, record.text, json));
  return std::move(record.text);
}

/// The newest round that left anything: one that was announced only, by a resume that was killed, is none.
Result<int> lastBegun(const RunStore& run, const Snapshot& seen) {
  int last = 0;
  for (const PodInfo& pod : seen.pods) last = std::max(last, pod.round);
  for (const JobInfo& job : seen.jobs) last = std::max(last, std::min(job.round, run.lastRound()));
  for (const std::string& node : run.submission().nodes) {
    MUSTER_TRY(const NodeResult result, run.result(node));
    last = std::max(last, result.round);
  }
  return last;
}

/// Whether a pod says more of its node than the result that is kept. A log without its record is read again
/// while its pod is there, but an exit code that was seen is only replaced by a worse one.
bool isNew(const PodInfo& pod, const NodeResult& kept) {
  if (pod.round != kept.round) return pod.round > kept.round;
  const bool worse = weight(pod.exitCode) > weight(kept.exitCode);
  if (pod.name != kept.pod) return !kept.pod.empty() && worse;
  return !kept.problem.empty() && (worse || kept.exitCode < 0 || pod.exitCode == kept.exitCode);
}

}  // namespace

Result<std::map<std::string, NodeResult>> collectResults(const RunStore& run, const Snapshot& seen,
                                                         const RecordCheck& check) {
  const Submission& submission = run.submission();
  const auto pods = endedPods(seen);
  MUSTER_TRY(const int last, lastBegun(run, seen));
  std::map<std::string, NodeResult> results;
  for (const std::string& node : submission.nodes) {
    MUSTER_TRY(NodeResult result, run.result(node));
    const auto pod = pods.find(node);
    if (pod != pods.end() && isNew(*pod->second, result)) {
      const auto record = recordOf(submission, *pod->second, check);
      const NodeResult earlier = result;
      result = {pod->second->name, pod->second->round, pod->second->exitCode,
                record.ok() ? std::string() : join({record.error().message, pod->second->why}, "; ")};
      // Where a resume was killed before it did so, or another pod of the round ended worse.
      if (!earlier.pod.empty() && (earlier.round < result.round || earlier.pod != result.pod))
        MUSTER_CHECK_OK(run.setAside(node, earlier.round));
      MUSTER_CHECK_OK(run.keep(node, result, record.ok() ? *record : std::string()));
    }
    const bool met =
        !submission.together || result.round == last || result.exitCode == 1;  // a rejection stays
    if (!result.pod.empty() && !met)
      MUSTER_CHECK_OK(run.setAside(node, result.round));
    else if (!result.pod.empty())
      results[node] = std::move(result);
  }
  return results;
}

std::string expectText(const Submission& run, const std::vector<NodeJob>& nodes, const Nodes& known) {
  std::string text;
  for (const NodeJob& node : nodes) {
    const bool judged = node.state == NodeState::kAccepted || node.state == NodeState::kRejected ||
                        node.state == NodeState::kIncomplete;
    const std::string why = judged ? "" : unavailable(known, node.node, run.gpus);
    text += node.node + (why.empty() ? "" : " down " + why) + '\n';
  }
  return text;
}

}  // namespace muster::kube
