// SPDX-License-Identifier: Apache-2.0
// Determines the state of every node of a run.
#include "runner/slurm/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
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

constexpr const char* kJournal = "journal.jsonl";
constexpr uint64_t kMostJournal = 64ull << 20;  ///< four times as much as a record
constexpr size_t kMostParsed = 16u << 20;       ///< of it
// What lines of a journal begin with, and what those say that are looked at: most are not worth their
// parsing.
constexpr std::string_view kInterrupted = R"({"type":"interrupted")", kStage = R"({"type":"stage")";
constexpr std::string_view kFailed = R"("outcome":"fail")", kFlaky = R"("flaky")";

bool isAnyIn(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

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

/// Whether an attempt failed; like verdicts, attempts may be folded.
bool hasFailed(const Json& attempts) {
  return attempts.is_structured() ? std::any_of(attempts.begin(), attempts.end(), hasFailed)
                                  : attempts == "fail";
}

/// Calls `tells(outcome, failed)` for the verdicts of a stage until it returns true; `failed`: an attempt
/// did. Verdicts are folded: what several do not share are lists in their "rows".
template <typename F>
bool anyVerdict(const Json& stage, F tells) {
  const auto verdicts = stage.find("verdicts");
  if (verdicts == stage.end() || !verdicts->is_array()) return false;
  static const Json kNothing;
  for (const Json& verdict : *verdicts) {
    if (!verdict.is_object()) continue;
    const auto rows = verdict.find("rows");
    const bool folded =
        rows != verdict.end() && rows->is_object() && !rows->empty() && rows->begin()->is_array();
    const size_t count = folded ? rows->begin()->size() : 1;
    const auto ofAll = [&](const char* key) -> const Json& {
      const auto found = verdict.find(key);
      return found == verdict.end() ? kNothing : *found;
    };
    const bool allFailed = hasFailed(ofAll("attempts"));  // shared ones once: there may be many rows
    for (size_t i = 0; i < count; ++i) {
      // Null where only other rows have it.
      const auto ofRow = [&](const char* key) -> const Json* {
        if (!folded || !rows->contains(key)) return nullptr;
        const Json& column = rows->at(key);
        return column.is_array() && i < column.size() ? &column[i] : &kNothing;
      };
      const Json *outcome = ofRow("outcome"), *attempts = ofRow("attempts");
      if (tells(outcome == nullptr ? ofAll("outcome") : *outcome,
                attempts == nullptr ? allFailed : hasFailed(*attempts)))
        return true;
    }
  }
  return false;
}

/// Whether the line of a stage tells of a failure that its plan does not allow. Of an interrupted stage, what
/// failed once counts.
bool tellsFailure(const Json& stage, bool interrupted) {
  std::string outcome;
  bool allowsFlaky = false;
  JsonReader(stage, "stage").optional("outcome", outcome);
  if (const auto evidence = stage.find("evidence"); evidence != stage.end() && evidence->is_object())
    JsonReader(*evidence, "evidence").optional("allow_flaky", allowsFlaky);
  if (!interrupted && (outcome == "fail" || (outcome == "flaky" && !allowsFlaky))) return true;
  return anyVerdict(stage, [&](const Json& verdict, bool failed) {
    if (verdict == "waived") return false;
    if (interrupted && verdict == "fail") return true;
    return !allowsFlaky && (verdict == "flaky" || (interrupted && failed));
  });
}

/// Whether something had failed in a run that left no record: its runner was killed, or its node went down.
/// `name`: of its journal, below the folder of the run. One that is too large to be read does not prove that
/// nothing had.
bool hadFailed(const RunStore& run, const std::string& name) {
  std::error_code error;
  const auto journal = readFileBelow(run.folder(), name, kMostJournal);
  if (!journal.ok())
    return fs::is_regular_file(fs::symlink_status(run.folder() / name, error)) &&
           fs::file_size(run.folder() / name, error) > kMostJournal && !error;
  size_t parsed = 0;
  std::map<std::string, bool> interrupted;  // stage -> whether it had failed, unless it ended later
  for (size_t at = 0, end = 0; (end = journal->find('\n', at)) != std::string::npos; at = end + 1) {
    const std::string_view text = std::string_view(*journal).substr(at, end - at);
    const bool ended = text.starts_with(kStage);
    if (!ended && !text.starts_with(kInterrupted)) continue;
    if (ended && interrupted.empty() && !isAnyIn(text, {kFailed, kFlaky})) continue;
    if ((parsed += text.size()) > kMostParsed) return true;
    const auto line = parseJson(text);
    if (!line.ok()) continue;
    const Json* stage = JsonReader(*line, kJournal).object("stage");
    if (stage == nullptr && !ended) return true;
    if (stage == nullptr) continue;
    std::string stageName;
    JsonReader(*stage, "stage").optional("name", stageName);
    if (!ended)
      interrupted[stageName] = tellsFailure(*stage, true);
    else if (tellsFailure(*stage, false))
      return true;
    else
      interrupted.erase(stageName);
  }
  return std::any_of(interrupted.begin(), interrupted.end(), [](const auto& one) { return one.second; });
}

/// The same of a node's part of the cluster job, whose folder has one for the node's number. No link is
/// followed, and a job user may fill it.
bool hadFailedInCluster(const RunStore& run, const std::string& node) {
  constexpr int kMostLooks = 100;
  const std::string folder = "records/cluster/" + node;
  std::error_code error;
  if (!fs::is_directory(fs::symlink_status(run.folder() / folder, error))) return false;
  fs::directory_iterator part(run.folder() / folder, error);
  for (int looks = 0; !error && part != fs::directory_iterator() && looks < kMostLooks;
       part.increment(error)) {
    ++looks;
    if (hadFailed(run, folder + "/" + part->path().filename().string() + "/" + kJournal)) return true;
  }
  return false;
}

/// The jobs of a run, looked up once for all of its nodes.
struct JobIndex {
  std::vector<SubmittedJob> live;                ///< they wait or run; each once
  std::set<std::pair<int, std::string>> pinned;  ///< rounds and nodes to which a fleet job has pinned one
  std::map<std::string, std::string> cluster;    ///< the last cluster job over each node

  JobIndex(const std::vector<SubmittedJob>& submitted, const std::vector<JobInfo>& known) {
    std::set<std::string> unseen;
    for (const JobInfo& job : known)
      if (job.live()) unseen.insert(job.job);
    for (const SubmittedJob& job : submitted) {
      if (job.kind == JobKind::kPinned) pinned.emplace(job.round, job.nodes.front());
      if (job.kind == JobKind::kCluster)
        for (const std::string& node : job.nodes) cluster[node] = job.job;
      if (unseen.erase(job.job) > 0) live.push_back(job);
    }
  }

  /// Whether `job`, which is queued, could take a node that nobody has claimed, or a fleet job could still
  /// pin one to it: none was pinned to it in that round.
  [[nodiscard]] bool couldTake(const SubmittedJob& job, const std::string& node) const {
    return job.kind == JobKind::kArray || (job.kind == JobKind::kPinned && job.nodes.front() == node) ||
           (job.kind == JobKind::kFleet && !pinned.contains({job.round, node}));
  }
};

NodeJob unclaimed(const std::string& node, const JobIndex& index, const Nodes& known) {
  const auto found = known.find(node);
  if (found == known.end()) return {node, NodeState::kMissing, "Slurm has no such node"};
  if (!found->second.available()) return {node, NodeState::kMissing, found->second.text()};
  for (const SubmittedJob& job : index.live)
    if (index.couldTake(job, node)) return {node, NodeState::kWaiting, fmt::format("job {}", job.job)};
  return {node, NodeState::kMissing, "no job reached it"};
}

/// A node of a run that has stages of scope cluster only: no task claims it, its part of the cluster job
/// leaves its exit code.
NodeJob inCluster(const RunStore& run, const std::string& node, const std::vector<JobInfo>& jobs,
                  const JobIndex& index, const Nodes& known) {
  const auto cluster = index.cluster.find(node);
  const int own = readExit(run.folder() / kClusterExits / node);
  const int whole = readExit(run.folder() / "cluster.exit");
  if (own >= 0) return {node, stateOfExit(own), fmt::format("exit {}", own)};
  if (cluster == index.cluster.end()) return unclaimed(node, index, known);
  for (const JobInfo& job : jobs) {
    if (job.job != cluster->second) continue;
    const bool running = job.live() && job.state != "PENDING";
    const NodeState state = running      ? NodeState::kRunning
                            : job.live() ? NodeState::kWaiting
                                         : NodeState::kLost;
    return {node, state,
            fmt::format("job {} {}{}", job.id, job.live() ? "" : "ended as ", printable(job.state, 40))};
  }
  return {node, NodeState::kLost,
          fmt::format("job {} is gone{}", cluster->second,
                      whole < 0 ? "" : fmt::format(" (exit {}) and left no exit code of this node", whole))};
}

}  // namespace

Result<std::vector<NodeJob>> readProgress(const RunStore& run, const std::vector<SubmittedJob>& submitted,
                                          const std::vector<JobInfo>& jobs, const Nodes& known) {
  const JobIndex index(submitted, jobs);
  std::vector<NodeJob> all;
  for (const std::string& node : run.submission().nodes) {
    const int code = readExit(run.exit(node));
    const std::string number = readClaim(run.claim(node));
    const std::string other = code < 0 ? "" : whatSlurmSays(node, number, code, jobs);
    if (!run.submission().nodeStages)
      all.push_back(inCluster(run, node, jobs, index, known));
    else if (!other.empty())
      all.push_back({node, NodeState::kFailed, other});
    else if (code >= 0)
      all.push_back({node, stateOfExit(code), fmt::format("exit {}", code)});
    else if (!number.empty())
      all.push_back(claimed(node, number, jobs));
    else
      all.push_back(unclaimed(node, index, known));
    const bool ended = all.back().state == NodeState::kLost || all.back().state == NodeState::kFailed;
    if (code < 0 && number.empty())
      all.back().detail += whyRefused(run.claim(node));
    else if (code < 0)
      all.back().detail += whyRefused(run.exit(node));
    // To run it again until it passes would be no acceptance.
    if (ended && (hadFailed(run, fmt::format("records/nodes/{}/{}", node, kJournal)) ||
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
