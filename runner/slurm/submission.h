// SPDX-License-Identifier: Apache-2.0
// A run on Slurm as its folder keeps it: what was asked for, and every job that was submitted.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "runner/core/json.h"
#include "runner/core/result.h"
#include "runner/system/files.h"

namespace muster::slurm {

/// How jobs are asked for; the same for every job of a run.
struct JobSettings {
  std::string name;
  std::string partition;
  std::string account;
  std::string reservation;
  std::string qos;
  std::string constraint;
  std::string runtime;                     ///< "none", "pyxis", "apptainer" or "singularity"
  std::string image;                       ///< of the container; empty without one
  std::vector<std::string> mounts;         ///< "FROM:TO" beside the run folder
  std::string containerMuster = "muster";  ///< the command inside the image
  std::string muster;   ///< this executable, for jobs without container and for the fleet job
  int minutes = 60;     ///< time limit of a node's task and of the cluster job
  int gapMinutes = 30;  ///< how long a pinned job may wait for its node
  int atOnce = 0;       ///< tasks that run at the same time; 0: as many as there are nodes
  int mostJobs = 0;     ///< jobs of the run in the queue at the same time; 0: what Slurm takes
  bool nvidia = false;  ///< it measures on real GPUs: a container needs their driver
  int gpus = 0;         ///< GPUs to ask for on each node; 0: none
};

/// What a run is: written before the first job. Only limitJobs() changes it.
struct Submission {
  std::string id;
  std::string folder;  ///< where its jobs write; create() sets it. Empty: an earlier version did not
  double created = 0;  ///< seconds since 1970
  std::string planName;
  std::string planFile;  ///< its name in inputs/
  std::string planSha256;
  std::string scenarioFile;               ///< its name in inputs/; empty: real
  std::vector<std::string> nodes;         ///< every node that must have a record, in the order asked for
  std::vector<std::string> options;       ///< of `muster run`, for every node alike
  std::vector<std::string> fleetOptions;  ///< of `muster fleet`
  bool nodeStages = true;                 ///< the plan has stages of scope device or node
  bool clusterStages = false;             ///< it has stages of scope cluster
  bool recordKeys = false;                ///< each record carries the MAC of its node's key
  JobSettings jobs;
};

enum class JobKind { kArray, kPinned, kCluster, kFleet };
const char* jobKindName(JobKind kind);

inline constexpr int kMostRounds = 1'000'000;  ///< a larger number of a round is none that a run has made

/// One submitted job. A run begins a new round by `submit` and each `resume`.
struct SubmittedJob {
  JobKind kind = JobKind::kArray;
  std::string job;
  int round = 0;
  std::vector<std::string> nodes;  ///< a pinned job's node, the nodes of a cluster job
  int tasks = 1;
};

/// The folder of one run:
///   slurm.json jobs.jsonl   this file's two structs        nodes.txt inputs/            what was asked for
///   scripts/ logs/          the jobs' scripts and outputs  claims/NODE    who runs the plan on that node
///   records/nodes/NODE/     what `muster run` wrote        exits/NODE     its exit code
///   records/cluster/NODE/   of the cluster-scope job       attempts/      what a resume set aside
///   run.key keys/NODE       by which records show whose they are; readable by the owner alone
///   expect.txt              the nodes, and what Slurm says of those that it cannot use, for `muster fleet`
///   fleet/ fleet.exit       the fleet's report and exit code of the last round
class RunStore {
 public:
  /// Makes the folder of a new run. kUsage when something is there already, when its path cannot be told to
  /// Slurm or leads over a symbolic link, and for a folder that others could change (ownFolder()). `named`:
  /// the way to `folder` as the user gave it, if by other links than root's root does not take it.
  static Result<RunStore> create(const std::filesystem::path& folder, const Submission& submission,
                                 const std::filesystem::path& named = {});
  /// Opens the folder of a run. kUsage when it is none.
  static Result<RunStore> open(const std::filesystem::path& folder);
  static bool holdsRun(const std::filesystem::path& folder);
  /// kUsage where the jobs of the run write to another folder: this one was copied or moved.
  [[nodiscard]] Status checkPlace() const;
  /// Whose folder it is: all jobs of the run are his.
  [[nodiscard]] Result<uid_t> owner() const;

  /// Keeps others from submitting or changing nodes for this run. kUsage while somebody does.
  Result<Fd> lock() const;
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  [[nodiscard]] const Submission& submission() const { return submission_; }
  [[nodiscard]] std::filesystem::path claim(const std::string& node) const {
    return folder_ / "claims" / node;
  }
  [[nodiscard]] std::filesystem::path exit(const std::string& node) const { return folder_ / "exits" / node; }
  [[nodiscard]] std::filesystem::path nodeFolder(const std::string& node) const {
    return folder_ / "records" / "nodes" / node;
  }
  [[nodiscard]] std::filesystem::path input(const std::string& name) const {
    return folder_ / "inputs" / name;
  }
  [[nodiscard]] std::filesystem::path script(JobKind kind) const;
  [[nodiscard]] std::filesystem::path runKey() const { return folder_ / "run.key"; }
  [[nodiscard]] std::filesystem::path nodeKey(const std::string& node) const {
    return folder_ / "keys" / node;
  }

  /// Sets the maximum number of jobs of this run in the queue.
  Status limitJobs(int mostJobs);
  Status append(const SubmittedJob& job) const;
  /// Notes that a job was taken back before it could begin: from then on it counts as never submitted.
  Status appendCancelled(const std::string& job) const;
  /// Every job that was submitted and not taken back.
  [[nodiscard]] Result<std::vector<SubmittedJob>> jobs() const;
  /// Moves what a node left behind to attempts/, so that it can run the plan again.
  Status setAside(const std::string& node, int round) const;
  /// The same for all of the cluster-scope job.
  Status setClusterAside(int round) const;

 private:
  Status appendLine(const Json& line) const;
  RunStore(std::filesystem::path folder, Submission submission)
      : folder_(std::move(folder)), submission_(std::move(submission)) {}
  std::filesystem::path folder_;
  Submission submission_;
};

/// The numbers of these jobs.
std::set<std::string> jobNumbers(const std::vector<SubmittedJob>& jobs);

/// The exit code that a job left in a small file of its own; -1 when there is none yet, or none that counts.
int readExit(const std::filesystem::path& file);

/// ": " and why a claim or exit code is not believed; empty where it is missing or can be read.
std::string whyRefused(const std::filesystem::path& file);

/// The number of the job that has claimed a node; empty where nobody has.
std::string readClaim(const std::filesystem::path& file);

}  // namespace muster::slurm
