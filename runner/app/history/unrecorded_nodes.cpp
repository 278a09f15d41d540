// SPDX-License-Identifier: Apache-2.0
// Holds the records of new runs against the nodes that the runs were submitted for.
#include "runner/app/history/unrecorded_nodes.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <optional>

#include "runner/app/input/run_records.h"
#include "runner/core/shell.h"
#include "runner/core/text.h"
#include "runner/kube/run_store.h"
#include "runner/slurm/submission.h"

namespace muster {
namespace fs = std::filesystem;
namespace {

using history::DeltaInput;

/// A run on Slurm or Kubernetes.
struct LaunchedRun {
  /// What must have a record.
  struct Part {
    std::string node;
    std::string place;  ///< below records/: "nodes/n1", "cluster/n1", on Kubernetes "n1"
    std::string end;    ///< "exit 2"
    fs::path ended;     ///< the file that was written when it did
  };
  std::vector<Part> parts;
  std::string resume;                                      ///< the command that does
  fleet::RecordRules rules;                                ///< whose folders they are
  std::set<std::pair<std::string, std::string>> recorded;  ///< folders below records/ and nodes
};

fs::path launchedRunOf(const fs::path& path) {
  const fs::path run = slurmRunOf(path);
  return run.empty() ? kubeKeyOf(path).parent_path() : run;
}

std::string exitText(int code) {
  return code < 0 ? "no exit code" : fmt::format("exit {}", code);
}

Result<LaunchedRun> slurmRun(const fs::path& folder) {
  MUSTER_TRY(const auto store, slurm::RunStore::open(folder));
  const slurm::Submission& submission = store.submission();
  LaunchedRun run;
  run.resume = "muster slurm resume " + shellQuote(folder.string());
  run.rules.nodeAt = [submission](const fs::path& place) { return nodeOfPath(submission, place); };
  for (const std::string& node : submission.nodes) {
    if (submission.nodeStages)
      run.parts.push_back(
          {node, "nodes/" + node, exitText(slurm::readExit(store.exit(node))), store.exit(node)});
    if (submission.clusterStages)
      run.parts.push_back(
          {node, "cluster/" + node,
           exitText(slurm::readExit(folder / "cluster_exits" / node)) + " in stages of scope cluster",
           folder / "cluster_exits" / node});
  }
  return run;
}

Result<LaunchedRun> kubeRun(const fs::path& folder) {
  MUSTER_TRY(const auto store, kube::RunStore::open(folder));
  const std::vector<std::string>& nodes = store.submission().nodes;
  LaunchedRun run;
  run.resume = "muster k8s resume " + shellQuote(folder.string());
  run.rules.nodeAt = [nodes](const fs::path& place) {
    return std::find(nodes.begin(), nodes.end(), place.string()) == nodes.end() ? "" : place.string();
  };
  for (const std::string& node : nodes) {
    MUSTER_TRY(const kube::NodeResult result, store.result(node));
    run.parts.push_back({node, node,
                         result.pod.empty() ? "no result was collected"
                                            : exitText(result.exitCode) +
                                                  (result.problem.empty() ? "" : ": " + result.problem),
                         folder / "results" / (node + ".json")});
  }
  return run;
}

/// Whether `path` is `folder` or lies in it, as it was named or without links.
bool holds(const fs::path& folder, const fs::path& path) {
  std::error_code error;
  const fs::path named = fs::absolute(folder, error).lexically_normal();
  for (const fs::path& way : {named, fs::weakly_canonical(named, error)}) {
    const fs::path place = path.lexically_relative(way);
    if (!place.empty() && *place.begin() != "..") return true;
  }
  return false;
}

/// Runs by their folders; each is opened once, by whatever name.
class LaunchedRuns {
 public:
  LaunchedRuns(const std::vector<fs::path>& given, DeltaInput& input) : input_(input) {
    std::error_code error;
    for (const fs::path& one : given)
      if (const fs::path run = launchedRunOf(fs::absolute(one, error)); !run.empty())
        given_.insert(fs::weakly_canonical(run, error));
  }

  /// nullptr for none, and for one that is set aside: it cannot be read, or only lies below what was given. A
  /// node can leave such a directory among its own files, which would then speak of others.
  LaunchedRun* at(const fs::path& folder) {
    if (folder.empty()) return nullptr;
    std::error_code error;
    const auto [run, isNew] = runs_.try_emplace(fs::weakly_canonical(folder, error));
    if (isNew) {
      auto opened = open(folder, run->first);
      if (opened.ok())
        run->second = std::move(*opened);
      else
        input_.records.quarantined.push_back({validUtf8(folder.string()), "", opened.error().text()});
    }
    return run->second ? &*run->second : nullptr;
  }

 private:
  [[nodiscard]] Result<LaunchedRun> open(const fs::path& folder, const fs::path& canonical) const {
    if (!given_.contains(canonical))
      return Error{ErrorCode::kUsage,
                   "it is a run on Slurm or Kubernetes below the directory given: give it itself, or move it "
                   "away",
                   ""};
    return slurmRunOf(folder) == folder ? slurmRun(folder) : kubeRun(folder);
  }

  DeltaInput& input_;
  std::set<fs::path> given_;
  std::map<fs::path, std::optional<LaunchedRun>> runs_;
};

void addJournal(const fs::path& path, LaunchedRuns& runs, DeltaInput& input) {
  const std::string shown = validUtf8(path.string());
  const fs::path folder = launchedRunOf(path);
  const LaunchedRun* launched = runs.at(folder);
  if (launched == nullptr && !folder.empty()) return;  // the run was set aside
  const std::string place = launched == nullptr ? "" : placeInRun(folder, path).string();
  auto run = fleet::readInterruptedRun(path, shown);
  Status placed = run.ok() ? Status() : Status(run.error());
  if (placed.ok() && launched != nullptr)
    placed = fleet::checkPlace(launched->rules, place, run->node, nullptr);
  if (placed.ok()) return input.interruptedRuns.push_back(std::move(*run));
  const std::string node = launched == nullptr ? "" : launched->rules.nodeAt(place);
  if (node.empty())
    input.records.quarantined.push_back({shown, "", placed.error().message});
  else
    input.unrecorded.push_back({node, fmt::format("{}: {}", printable(shown, 200), placed.error().message)});
}

}  // namespace

Result<std::set<fs::path>> launchedRunsAt(const fs::path& given) {
  std::set<fs::path> runs;
  std::error_code error;
  const fs::path top = fs::absolute(history::recordsFolderOf(given), error);
  if (const fs::path run = launchedRunOf(top); !run.empty()) {
    if (*placeInRun(run, top).begin() != "..") runs.insert(run);
    return runs;
  }
  fs::recursive_directory_iterator at(top, error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    if (!fs::is_directory(at->symlink_status(error))) continue;
    const std::string name = at->path().filename().string();
    const fs::path run = launchedRunOf(at->path());
    if (!run.empty()) runs.insert(run);
    if (!run.empty() || name.starts_with(".") || name == fleet::kAttemptsFolder ||
        fs::exists(at->path() / "record.json", error))
      at.disable_recursion_pending();
  }
  if (error)
    return Error{ErrorCode::kIo, "cannot look for runs in this directory: " + error.message(),
                 given.string()};
  return runs;
}

Status addUnrecorded(const std::vector<fs::path>& given, DeltaInput& input) {
  LaunchedRuns runs(given, input);
  std::map<std::string, std::map<fs::path, double>> started;  // by node and run, its newest record
  for (size_t i = 0; i < input.uses.size(); ++i) {
    if (input.uses[i] != history::RecordUse::kRerun) continue;
    const fleet::NodeSummary& record = input.records.nodes[i];
    const fs::path folder = launchedRunOf(record.path);
    double& newest = started[record.node][folder];
    newest = std::max(newest, record.started);
    if (LaunchedRun* run = runs.at(folder); run != nullptr)
      for (fs::path at = placeInRun(folder, record.path).parent_path(); !at.empty(); at = at.parent_path())
        run->recorded.emplace(at.string(), record.node);
  }
  // Whether the node was run again in another run, after it had ended in this one.
  const auto isRunAgain = [&](const LaunchedRun::Part& part, const fs::path& at) {
    struct stat file {};
    return stat(part.ended.c_str(), &file) == 0 &&
           std::any_of(started[part.node].begin(), started[part.node].end(), [&](const auto& other) {
             return other.first != at && other.second > static_cast<double>(file.st_mtim.tv_sec);
           });
  };
  for (const fs::path& folder : given) {
    std::error_code error;
    if (!fs::is_directory(folder, error)) continue;
    MUSTER_TRY(const auto journals, fleet::findInterruptedRuns(history::recordsFolderOf(folder)));
    for (const fs::path& path : journals) addJournal(path, runs, input);
    MUSTER_TRY(const auto launched, launchedRunsAt(folder));
    for (const fs::path& at : launched) {
      const LaunchedRun* run = runs.at(at);
      if (run == nullptr) continue;
      for (const LaunchedRun::Part& part : run->parts)
        if (holds(folder, at / "records" / part.place) && !run->recorded.contains({part.place, part.node}) &&
            !isRunAgain(part, at))
          input.unrecorded.push_back(
              {part.node,
               fmt::format("the run in {} left no record of it ({}): finish it with `{}`, or give the "
                           "directories of its other nodes alone",
                           printable(at.string(), 200), printable(part.end, 200), run->resume)});
    }
  }
  return {};
}

}  // namespace muster
