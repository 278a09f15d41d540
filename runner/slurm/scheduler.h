// SPDX-License-Identifier: Apache-2.0
// What Slurm says and does, through its own tools: nodes, jobs, submitting, draining. No library of Slurm is
// linked, so any version serves. Where no controller answers, all of these end with kTimeout.
#pragma once

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
  std::string reason;  ///< empty where none is set
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
  std::string reason;
  std::string comment;  ///< ours hold the run's id
  int exitCode = -1;    ///< of its script; -1: not known
  int64_t user = -1;    ///< id of the user it ran as; -1: not known
  /// Whether it still waits or runs.
  [[nodiscard]] bool live() const;
};

using Nodes = std::map<std::string, NodeInfo>;

/// All nodes, or those of a partition. kUsage for a partition that Slurm does not know.
Result<Nodes> readNodes(const std::string& partition = "");

/// Every job and array task that Slurm remembers and shows to us.
Result<std::vector<JobInfo>> readJobs();

/// Those of these numbers. `jobs` may name some it has forgotten.
Result<std::vector<JobInfo>> readJobs(const std::set<std::string>& jobs);

/// Fills in exit codes and users, which readJobs() leaves out: another question to the controller.
Status addEnds(std::vector<JobInfo>& jobs);

/// How these jobs ended, by the accounting (`sacct`), with all tasks of arrays; none where there is none.
Result<std::vector<JobInfo>> readAccountedJobs(const std::set<std::string>& jobs);
/// A line of `sacct` in the format that readAccountedJobs() asks for. kProtocol when it is another.
Result<JobInfo> parseAccountedLine(const std::string& line);

/// `scontrol show config` as names and values.
Result<std::map<std::string, std::string>> readConfiguration();

/// `scontrol show assoc_mgr`: the limits of accounts and QOS, and what is used of them.
Result<std::string> readAssociations();

/// Submits a script file; returns the job's number. SBATCH_* variables of the environment have no say: they
/// would overrule the script.
Result<std::string> submit(const std::string& script, const std::vector<std::string>& options);

/// Cancels jobs that still wait or run.
Status cancel(const std::set<std::string>& jobs);

/// Sets a node to DRAIN with this reason, or back to service.
Status drain(const std::string& node, const std::string& reason);
Status resume(const std::string& node);

/// The fields of one line of `sinfo` in the format that readNodes() asks for. kProtocol when it is another.
Result<NodeInfo> parseNodeLine(const std::string& line);
/// How many GPUs "gpu:h100:8(S:0-1),nic:2" means.
int gpusOf(const std::string& gres);

}  // namespace muster::slurm
