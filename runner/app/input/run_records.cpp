// SPDX-License-Identifier: Apache-2.0
// Checks records against what Slurm reports about their jobs, or against the key of their run on Kubernetes.
#include "runner/app/input/run_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "runner/core/clock.h"
#include "runner/core/text.h"
#include "runner/record/record_mac.h"
#include "runner/slurm/node_names.h"
#include "runner/system/trust.h"

namespace muster {
namespace fs = std::filesystem;
namespace {

using Standing = slurm::NodeEnd::Standing;

Error refused(std::string why) {
  return {ErrorCode::kUsage, std::move(why), ""};
}

class Rules {
 public:
  Rules(const slurm::Witness& witness, bool simulated, bool believe)
      : witness_(witness), simulated_(simulated), believe_(believe) {}

  [[nodiscard]] Status check(const std::string& node, const fs::path& path,
                             const fleet::NodeSummary* record) const {
    if (record == nullptr) return {};  // without results there is nothing to believe
    const bool ofCluster = *path.begin() == "cluster";
    const slurm::NodeEnd end = ofCluster ? witness_.ofCluster(node) : witness_.ofNode(node);
    if (end.standing == Standing::kContradicted) return refused(end.why);
    if (end.standing == Standing::kForgotten && !believe_)
      return refused(end.why + "; use --unconfirmed to trust the run directory");
    if (record->exitCode != end.exitCode)
      return refused(
          fmt::format("it says exit code {}, job {} ended with {}", record->exitCode, end.job, end.exitCode));
    if (record->jobId != end.job)
      return refused(fmt::format("it belongs to job {}, but the node's job is {}",
                                 record->jobId.empty() ? "none" : printable(record->jobId, 40), end.job));
    if (record->simulated != simulated_)
      return refused(fmt::format("it is {}simulated, but the run was submitted {} --simulate",
                                 simulated_ ? "not " : "", simulated_ ? "with" : "without"));
    MUSTER_CHECK_OK(checkTime(*record, end));
    return ofCluster ? checkGroup(*record) : checkAlone(*record);
  }

 private:
  /// A run begins and ends while its job runs; one in simulation ends in virtual time.
  [[nodiscard]] static Status checkTime(const fleet::NodeSummary& record, const slurm::NodeEnd& end) {
    if (end.standing != Standing::kConfirmed) return {};
    const double from = static_cast<double>(end.start) - slurm::kMaxClockSkew;
    const double to = static_cast<double>(end.end) + slurm::kMaxClockSkew;
    const auto within = [&](double time) { return time >= from && time <= to; };
    if (within(record.started) && (record.simulated || within(record.finished))) return {};
    return refused(fmt::format("it says that it ran from {} to {}, job {} ran from {} to {}",
                               formatUtc(record.started), formatUtc(record.finished), end.job,
                               formatUtc(static_cast<double>(end.start)),
                               formatUtc(static_cast<double>(end.end))));
  }

  /// A task speaks for its own node: stages of all nodes are another job's.
  [[nodiscard]] static Status checkAlone(const fleet::NodeSummary& record) {
    for (const fleet::StageSummary& stage : record.stages)
      if (stage.scope == Scope::kCluster && stage.state != StageState::kElsewhere)
        return refused("it holds a stage of scope cluster, which the task of one node does not run");
    return {};
  }

  [[nodiscard]] Status checkGroup(const fleet::NodeSummary& record) const {
    const size_t nodes = witness_.clusterNodes().size();
    if (static_cast<size_t>(record.nodeCount) != nodes)
      return refused(
          fmt::format("it belongs to a group of {} nodes, but the job has {}", record.nodeCount, nodes));
    return {};
  }

  const slurm::Witness& witness_;
  bool simulated_;
  bool believe_;
};

/// The folder with a file `manifest` that `path` is or lies in; empty: none.
fs::path runOf(const fs::path& path, const char* manifest) {
  std::error_code error;
  // Whatever has taken its place: who opens the run says what is wrong with it.
  const auto isRun = [&](const fs::path& folder) {
    return fs::exists(fs::symlink_status(folder / manifest, error)) && !isPlanted(folder / manifest);
  };
  const fs::path named = fs::absolute(path, error).lexically_normal();
  // A link in the run leads out of it, one on the way to it does not.
  for (const fs::path& way : {named, fs::weakly_canonical(named, error)})
    for (fs::path at = way; at.has_relative_path(); at = at.parent_path())
      if (isRun(at)) return at;
  return {};
}

/// The key of a run's records, which is left out of what is handed over.
Result<std::string> recordKey(const fs::path& path, const char* withoutIt) {
  std::error_code error;
  if (fs::symlink_status(path, error).type() != fs::file_type::not_found) return readKey(path);
  return Error{ErrorCode::kUsage,
               std::string("the key of this run's records is not there, as in any delivery; ") + withoutIt,
               path.string()};
}

/// The same, empty where it is not there and the run directory is trusted.
Result<std::string> trustedKey(const fs::path& path, bool unconfirmed) {
  std::error_code error;
  if (unconfirmed && fs::symlink_status(path, error).type() == fs::file_type::not_found) return std::string();
  return recordKey(path, "use --unconfirmed to trust the records without it");
}

}  // namespace

std::string nodeOfPath(const slurm::Submission& submission, const fs::path& path) {
  std::vector<std::string> parts;
  for (const fs::path& part : path) parts.push_back(part.string());
  if (!parts.empty() && parts.back() == "record.json") parts.pop_back();
  const bool alone = parts.size() == 2 && (parts[0] == "nodes" || parts[0] == "cluster");
  const bool ranked = parts.size() == 3 && parts[0] == "cluster" && parts[2].starts_with("node-") &&
                      parts[2].find_first_not_of("0123456789", 5) == std::string::npos;
  if (!alone && !ranked) return "";
  const auto& nodes = submission.nodes;
  return std::find(nodes.begin(), nodes.end(), parts[1]) == nodes.end() ? "" : parts[1];
}

namespace {

fleet::RecordRules rulesWithoutKey(const slurm::RunStore& run, const slurm::Witness& witness,
                                   bool unconfirmed) {
  fleet::RecordRules rules;
  rules.origin.owner = witness.owner();
  rules.nodeAt = [&run](const fs::path& path) { return nodeOfPath(run.submission(), path); };
  const Rules each(witness, !run.submission().scenarioFile.empty(), unconfirmed);
  rules.check = [each](const std::string& node, const fs::path& path, const fleet::NodeSummary* record) {
    return each.check(node, path, record);
  };
  return rules;
}

}  // namespace

Result<fleet::RecordRules> slurmRules(const slurm::RunStore& run, const slurm::Witness& witness,
                                      bool unconfirmed) {
  fleet::RecordRules rules = rulesWithoutKey(run, witness, unconfirmed);
  if (run.submission().recordKeys) {
    MUSTER_TRY(rules.origin.runKey,
               recordKey(run.runKey(),
                         "to judge the records as those of any folder, copy them out of the run "
                         "directory"));
  }
  return rules;
}

fs::path slurmRunOf(const fs::path& path) {
  return runOf(path, "slurm.json");
}

fs::path kubeKeyOf(const fs::path& path) {
  const fs::path run = runOf(path, "k8s.json");
  return run.empty() ? run : run / "run.key";
}

fs::path placeInRun(const fs::path& folder, const fs::path& path) {
  std::error_code error;
  const fs::path records = folder / "records";
  const fs::path place = fs::absolute(path, error).lexically_normal().lexically_relative(records);
  return *place.begin() == ".." ? fs::weakly_canonical(path, error).lexically_relative(records) : place;
}

Result<slurm::Witness> askSlurm(const slurm::RunStore& run, bool unconfirmed) {
  auto witness = slurm::Witness::ask(run);
  if (witness.ok() || !unconfirmed || witness.error().code == ErrorCode::kTimeout) return witness;
  MUSTER_TRY(const uid_t owner, run.owner());
  MUSTER_TRY(auto jobs, run.jobs());
  return slurm::Witness(run, std::move(jobs), {}, owner);
}

Result<std::unique_ptr<RecordsOfAnyRun::Run>> RecordsOfAnyRun::openRun(const fs::path& folder,
                                                                       bool unconfirmed) {
  MUSTER_TRY(slurm::RunStore store, slurm::RunStore::open(folder));
  MUSTER_TRY(slurm::Witness witness, askSlurm(store, unconfirmed).context(folder.string()));
  auto run = std::make_unique<Run>(Run{std::move(store), std::move(witness), {}});
  run->rules = rulesWithoutKey(run->store, run->witness, unconfirmed);
  if (run->store.submission().recordKeys) {
    MUSTER_TRY(run->rules.origin.runKey, trustedKey(run->store.runKey(), unconfirmed));
  }
  return run;
}

Result<RecordsOfAnyRun> RecordsOfAnyRun::open(const std::vector<fs::path>& records, bool unconfirmed) {
  RecordsOfAnyRun all;
  size_t readable = 0;
  std::optional<Error> first, late;
  const auto count = [&](const auto& opened) {
    if (opened.ok())
      ++readable;
    else if (opened.error().code == ErrorCode::kTimeout)
      late = opened.error();
    else if (!first)
      first = opened.error();
  };
  for (const fs::path& record : records) {
    if (const fs::path folder = slurmRunOf(record); !folder.empty()) {
      if (!all.runs_.contains(folder)) all.runs_.emplace(folder, openRun(folder, unconfirmed));
      count(all.runs_.at(folder));
    } else if (const fs::path key = kubeKeyOf(record); !key.empty()) {
      if (!all.keys_.contains(key)) all.keys_.emplace(key, trustedKey(key, unconfirmed));
      count(all.keys_.at(key));
    } else {
      ++readable;
    }
    // Who did not answer for one run does not answer for the next either.
    if (late) return std::move(*late);
  }
  if (readable == 0 && first) return std::move(*first);
  return all;
}

Result<fleet::NodeSummary> RecordsOfAnyRun::read(fleet::RecordReader& reader, const fs::path& record,
                                                 const fs::path& directory) const {
  const auto unread = [](const Error& error) { return Error{error.code, error.text(), ""}; };
  const auto found = runs_.find(slurmRunOf(record));
  if (found != runs_.end() && !found->second.ok()) return unread(found->second.error());
  const Run* run = found == runs_.end() ? nullptr : found->second->get();
  fleet::RecordOrigin origin = run == nullptr ? fleet::RecordOrigin() : run->rules.origin;
  if (const auto key = keys_.find(run == nullptr ? kubeKeyOf(record) : fs::path()); key != keys_.end()) {
    if (!key->second.ok()) return unread(key->second.error());
    origin.runKey = *key->second;
  }
  reader.setOrigin(std::move(origin));
  auto node = reader.read(record, directory);
  if (run == nullptr || !node.ok()) return node;
  MUSTER_CHECK_OK(checkPlace(run->rules, placeInRun(found->first, record).string(), node->node, &*node));
  return node;
}

std::string forgottenNote(const slurm::RunStore& run, const slurm::Witness& witness) {
  std::vector<std::string> nodes;
  for (const std::string& node : run.submission().nodes) {
    const bool alone = run.submission().nodeStages;
    if ((alone ? witness.ofNode(node) : witness.ofCluster(node)).standing == Standing::kForgotten)
      nodes.push_back(node);
  }
  if (nodes.empty()) return "";
  return fmt::format(
      "Slurm has forgotten how the jobs of {} of {} nodes ended ({}) and keeps no accounting; a longer "
      "MinJobAge or AccountingStorageType=accounting_storage/slurmdbd helps the next run",
      nodes.size(), run.submission().nodes.size(), printable(slurm::shortList(nodes), 200));
}

}  // namespace muster
