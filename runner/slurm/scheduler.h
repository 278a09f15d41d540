// SPDX-License-Identifier: Apache-2.0
// What Slurm says and does, through its own tools: nodes, jobs, submitting, draining. No library of Slurm is
// linked, so any version serves. Where no controller answers, all of these end with kTimeout.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runner/core/result.h"

namespace muster::slurm {

/// A node as `sinfo` shows it.
struct NodeInfo {
  std::string name;
  std::string state;   ///< "idle", "drained*", as written
  std::string user;    ///< who gave the reason
  std::string reason;  ///< empty where none is set; one line of printable text
  int gpus = 0;        ///< of its generic resources

  /// Whether it is drained or draining, whoever asked for it.
  [[nodiscard]] bool drained() const;
  /// Whether it can take a job, now or once it is free: not down, drained, failing or out of reach.
  [[nodiscard]] bool available() const;
  /// Whether a controller that has just started does not know yet what it can do.
  [[nodiscard]] bool unknown() const;
  /// "drained: reason [by user]", for people.
  [[nodiscard]] std::string text() const;
};

/// One job, or one task of an array, that Slurm still remembers.
struct JobInfo {
  std::string job;     ///< number that it was submitted under: of the array for its tasks
  std::string number;  ///< its own: each task of an array has one, in SLURM_JOB_ID
  std::string id;      ///< "17_3"
  std::string state;   ///< "RUNNING", "NODE_FAIL" ...
  std::string nodes;
  std::string comment;     ///< ours hold the run's id; empty: none. Free text of its user
  int exitCode = -1;       ///< of its script; -1: not known
  int64_t user = -1;       ///< id of the user it runs as
  int64_t start = 0;       ///< seconds since 1970, by the controller's clock; 0: not yet, or not known
  int64_t end = 0;         ///< the same
  bool accounted = false;  ///< by `sacct`, which keeps comments only where it is told to
  /// Whether it still waits or runs.
  [[nodiscard]] bool live() const;
};

using Nodes = std::map<std::string, NodeInfo>;

/// All nodes, or those of a partition. kUsage for a partition that Slurm does not know.
Result<Nodes> readNodes(const std::string& partition = "");

/// Every job and array task that Slurm remembers and shows to us.
Result<std::vector<JobInfo>> readJobs();

/// Those of these numbers and this user. `jobs` may name some it has forgotten, and some of others.
Result<std::vector<JobInfo>> readJobs(const std::set<std::string>& jobs, uid_t user);

/// Fills in exit codes, which readJobs() leaves out: another question to the controller.
Status addEnds(std::vector<JobInfo>& jobs);

/// How these jobs ended, by the accounting (`sacct`), with all tasks of arrays; none where there is none.
Result<std::vector<JobInfo>> readAccountedJobs(const std::set<std::string>& jobs);

/// `scontrol show config` as names and values.
Result<std::map<std::string, std::string>> readConfiguration();

/// `scontrol show assoc_mgr`: the limits of accounts and QOS, and what is used of them.
Result<std::string> readAssociations();

/// Submits the text of a script; returns the job's number. SBATCH_* variables of the environment have no say:
/// they would overrule the script.
Result<std::string> submit(const std::string& script, const std::vector<std::string>& options);

/// Cancels jobs that still wait or run.
Status cancel(const std::set<std::string>& jobs);

/// Sets a node to DRAIN with this reason, or takes DRAIN away: one that is down stays down.
Status drain(const std::string& node, const std::string& reason);
Status undrain(const std::string& node);

/// What the tools print in the formats that the functions above ask for; kProtocol when it is another. Texts
/// that users choose (comments, reasons) stand last and have a fixed width: they may hold bars and line
/// breaks, and can neither add a line nor change another. A job that is listed twice is refused.
constexpr size_t kCommentWidth = 128;  ///< bytes; the rest of a longer one is cut
constexpr size_t kReasonWidth = 512;
Result<Nodes> parseNodes(const std::string& text);
Result<std::vector<JobInfo>> parseJobs(const std::string& text);
/// `comments` is another answer of `sacct`: numbers and comments.
Result<std::vector<JobInfo>> parseAccountedJobs(const std::string& text, const std::string& comments);

/// How many GPUs "gpu:h100:8(S:0-1),nic:2" means.
int gpusOf(const std::string& gres);

}  // namespace muster::slurm
