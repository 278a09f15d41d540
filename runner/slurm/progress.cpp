// SPDX-License-Identifier: Apache-2.0
// Determines the state of every node of a run.
#include "runner/slurm/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "runner/core/json.h"
#include "runner/core/text.h"
#include "runner/system/files.h"
#include "runner/system/trust.h"

namespace muster::slurm {
namespace fs = std::filesystem;
namespace {

/// Below the run folder: what each node's part of the cluster job ended with.
constexpr const char* kClusterExits = "cluster_exits";

constexpr uint64_t kMostJournal = 256ull << 20;

/// What a claim means while there is no exit code yet. A claim holds SLURM_JOB_ID, which is
/// JobInfo::number.
NodeJob claimed(const std::string& node, const std::string& number, const std::vector<JobInfo>& jobs) {
  for (const JobInfo& job : jobs) {
    if (job.number != number) continue;
    const bool live = job.live();
    return {node, live ? NodeState::kRunning : NodeState::kLost,
            fmt::format("job {} {}{}", job.id, live ? "" : "ended as ", printable(job.state, 40))};
  }
  return {node, NodeState::kLost, fmt::format("job {} is gone and left no exit code", number)};
}

/// What Slurm says of the job that claimed a node, where it is something else than the node's exit file;
/// empty where it agrees or says nothing.
std::string whatSlurmSays(const std::string& node, const std::string& number, int code,
                          const std::vector<JobInfo>& jobs) {
  const auto job =
      std::find_if(jobs.begin(), jobs.end(), [&](const JobInfo& one) { return one.number == number; });
  if (job == jobs.end() || job->live()) return "";
  if (job->nodes != node)
    return fmt::format("exit {}, but job {}, which claimed it, ran on {}", code, job->id,
                       printable(job->nodes, 80));
  if (job->exitCode < 0 || job->exitCode == code) return "";
  return fmt::format("exit {}, but Slurm reports that job {} ended with {}", code, job->id, job->exitCode);
}

/// Whether something had failed in a run that left no record: its runner was killed, or its node went down.
bool hadFailed(const fs::path& folder) {
  const auto journal = readOwnFile(folder / "journal.jsonl", kMostJournal);
  if (!journal.ok()) return false;
  for (size_t at = 0, end = 0; (end = journal->find('\n', at)) != std::string::npos; at = end + 1) {
    const auto line = parseJson(journal->substr(at, end - at));
    if (!line.ok() || !line->is_object()) continue;
    JsonReader reader(*line, "journal.jsonl");
    std::string type, outcome;
    reader.optional("type", type);
    if (type == "interrupted") return true;  // it is written of failures only
    const Json* stage = type == "stage" ? reader.object("stage") : nullptr;
    if (stage != nullptr) JsonReader(*stage, "stage").optional("outcome", outcome);
    if (outcome == "fail" || outcome == "flaky") return true;
  }
  return false;
}

/// The same of a node's part of the cluster job, whose folder has one for the node's number.
bool hadFailedInCluster(const RunStore& run, const std::string& node) {
  std::error_code error;
  fs::directory_iterator part(run.folder() / "records" / "cluster" / node, error);
  for (; !error && part != fs::directory_iterator(); part.increment(error))
    if (hadFailed(part->path())) return true;
  return false;
}

/// Whether a queued job could take a node that nobody has claimed.
bool couldTake(const SubmittedJob& job, const std::string& node) {
  if (job.kind == JobKind::kArray) return true;
  return job.kind == JobKind::kPinned && job.nodes.front() == node;
}

/// Whether a fleet job could still pin a job to a node: none was pinned to it in that round.
bool couldPin(const SubmittedJob& fleet, const std::string& node,
              const std::vector<SubmittedJob>& submitted) {
  return fleet.kind == JobKind::kFleet &&
         std::none_of(submitted.begin(), submitted.end(), [&](const SubmittedJob& job) {
           return job.kind == JobKind::kPinned && job.round == fleet.round && job.nodes.front() == node;
         });
}

NodeJob unclaimed(const std::string& node, const std::vector<SubmittedJob>& submitted,
                  const std::set<std::string>& live, const Nodes& known) {
  const auto found = known.find(node);
  if (found == known.end()) return {node, NodeState::kMissing, "Slurm has no such node"};
  if (!found->second.available()) return {node, NodeState::kMissing, found->second.text()};
  for (const SubmittedJob& job : submitted)
    if (live.count(job.job) > 0 && (couldTake(job, node) || couldPin(job, node, submitted)))
      return {node, NodeState::kWaiting, fmt::format("job {}", job.job)};
  return {node, NodeState::kMissing, "no job reached it"};
}

/// The last cluster job over `node`; nullptr where none was submitted.
const SubmittedJob* clusterJobOf(const std::vector<SubmittedJob>& submitted, const std::string& node) {
  const auto found = std::find_if(submitted.rbegin(), submitted.rend(), [&](const SubmittedJob& job) {
    return job.kind == JobKind::kCluster &&
           std::find(job.nodes.begin(), job.nodes.end(), node) != job.nodes.end();
  });
  return found == submitted.rend() ? nullptr : &*found;
}

/// A node of a run that has stages of scope cluster only: no task claims it, its part of the cluster job
/// leaves its exit code.
NodeJob inCluster(const RunStore& run, const std::string& node, const std::vector<SubmittedJob>& submitted,
                  const std::vector<JobInfo>& jobs, const std::set<std::string>& live, const Nodes& known) {
  const SubmittedJob* cluster = clusterJobOf(submitted, node);
  const int own = readExit(run.folder() / kClusterExits / node);
  const int whole = readExit(run.folder() / "cluster.exit");
  if (own >= 0) return {node, stateOfExit(own), fmt::format("exit {}", own)};
  if (cluster == nullptr) return unclaimed(node, submitted, live, known);
  for (const JobInfo& job : jobs) {
    if (job.job != cluster->job) continue;
    const bool running = job.live() && job.state != "PENDING";
    const NodeState state = running      ? NodeState::kRunning
                            : job.live() ? NodeState::kWaiting
                                         : NodeState::kLost;
    return {node, state,
            fmt::format("job {} {}{}", job.id, job.live() ? "" : "ended as ", printable(job.state, 40))};
  }
  return {node, NodeState::kLost,
          fmt::format("job {} is gone{}", cluster->job,
                      whole < 0 ? "" : fmt::format(" (exit {}) and left no exit code of this node", whole))};
}

}  // namespace

Result<std::vector<NodeJob>> readProgress(const RunStore& run, const std::vector<SubmittedJob>& submitted,
                                          const std::vector<JobInfo>& jobs, const Nodes& known) {
  std::set<std::string> live;
  for (const JobInfo& job : jobs)
    if (job.live()) live.insert(job.job);
  std::vector<NodeJob> all;
  for (const std::string& node : run.submission().nodes) {
    const int code = readExit(run.exit(node));
    const std::string number = readClaim(run.claim(node));
    const std::string other = code < 0 ? "" : whatSlurmSays(node, number, code, jobs);
    if (!run.submission().nodeStages)
      all.push_back(inCluster(run, node, submitted, jobs, live, known));
    else if (!other.empty())
      all.push_back({node, NodeState::kFailed, other});
    else if (code >= 0)
      all.push_back({node, stateOfExit(code), fmt::format("exit {}", code)});
    else if (!number.empty())
      all.push_back(claimed(node, number, jobs));
    else
      all.push_back(unclaimed(node, submitted, live, known));
    const bool ended = all.back().state == NodeState::kLost || all.back().state == NodeState::kFailed;
    // To run it again until it passes would be no acceptance.
    if (ended && (hadFailed(run.nodeFolder(node)) ||
                  (!run.submission().nodeStages && hadFailedInCluster(run, node)))) {
      all.back().state = NodeState::kRejected;
      all.back().detail += ", and something had failed by then";
    }
    const auto found = known.find(node);
    if (all.back().state != NodeState::kMissing && found != known.end() && !found->second.available())
      all.back().detail += ", " + found->second.text();
  }
  return all;
}

Result<std::vector<NodeJob>> readProgress(const RunStore& run) {
  MUSTER_TRY(const auto submitted, run.jobs());
  MUSTER_TRY(const uid_t owner, run.owner());
  MUSTER_TRY(auto jobs, readJobs(jobNumbers(submitted), owner));
  MUSTER_CHECK_OK(addEnds(jobs));
  MUSTER_TRY(const Nodes known, readNodes());
  return readProgress(run, submitted, jobs, known);
}

std::vector<std::string> rejectedInCluster(const RunStore& run) {
  std::vector<std::string> rejected;
  for (const std::string& node : run.submission().nodes) {
    const NodeState state = stateOfExit(readExit(run.folder() / kClusterExits / node));
    if (state == NodeState::kRejected || (state == NodeState::kFailed && hadFailedInCluster(run, node)))
      rejected.push_back(node);
  }
  return rejected;
}

bool anyLive(const std::vector<JobInfo>& jobs) {
  return std::any_of(jobs.begin(), jobs.end(), [](const JobInfo& job) { return job.live(); });
}

std::optional<int> fleetExit(const RunStore& run) {
  const int code = readExit(run.folder() / "fleet.exit");
  return code < 0 ? std::nullopt : std::optional<int>(code);
}

}  // namespace muster::slurm
