// SPDX-License-Identifier: Apache-2.0
// Which records of a run on Slurm count: each lies where its node writes it, is a file of the run's user,
// and says what Slurm says of the node's job. Those of a run on Kubernetes have a MAC by their node's key.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "reports/fleet/read/record_stream.h"
#include "runner/slurm/witness.h"

namespace muster {

/// The node that a path below records/ belongs to: nodes/NODE/record.json, cluster/NODE/record.json or
/// cluster/NODE/node-0002/record.json, and the folders of cut runs. Empty: no job of the run writes there.
std::string nodeOfPath(const slurm::Submission& submission, const std::filesystem::path& path);

/// `unconfirmed`: what Slurm has forgotten counts as the folder has it; else it does not count.
/// `witness` must outlive the rules.
Result<fleet::RecordRules> slurmRules(const slurm::RunStore& run, const slurm::Witness& witness,
                                      bool unconfirmed);

/// The folder of the run on Slurm that `path` is or lies in, also beside its records/. Empty: none.
std::filesystem::path slurmRunOf(const std::filesystem::path& path);

/// The key of the run on Kubernetes that `path` is or lies in. Empty: none.
std::filesystem::path kubeKeyOf(const std::filesystem::path& path);

/// Where `path` lies below the records/ of the run in `folder`, which is that of slurmRunOf() or kubeKeyOf().
std::filesystem::path placeInRun(const std::filesystem::path& folder, const std::filesystem::path& path);

/// Slurm's answer; with `unconfirmed` also where there is no Slurm to ask, as if it had forgotten all jobs.
Result<slurm::Witness> askSlurm(const slurm::RunStore& run, bool unconfirmed);

/// Reads records, wherever they lie, by the rules of the run on Slurm or Kubernetes that they lie in, if
/// there is one.
class RecordsOfAnyRun {
 public:
  /// Asks Slurm once for each run of `records`. `unconfirmed`: as for slurmRules(). An Error where it can
  /// read no record; of some runs alone, read() says it of each of their records.
  static Result<RecordsOfAnyRun> open(const std::vector<std::filesystem::path>& records, bool unconfirmed);
  /// As RecordReader::read(); an Error also where the rules refuse the record. From any thread.
  Result<fleet::NodeSummary> read(fleet::RecordReader& reader, const std::filesystem::path& record,
                                  const std::filesystem::path& directory = {}) const;

 private:
  struct Run {
    slurm::RunStore store;
    slurm::Witness witness;
    fleet::RecordRules rules;  ///< point to the two above
  };
  static Result<std::unique_ptr<Run>> openRun(const std::filesystem::path& folder, bool unconfirmed);

  std::map<std::filesystem::path, Result<std::unique_ptr<Run>>> runs_;  ///< by folder
  std::map<std::filesystem::path, Result<std::string>> keys_;  ///< of runs on Kubernetes, by their files
};

/// What a report says of nodes whose jobs Slurm has forgotten; empty where it remembers all.
std::string forgottenNote(const slurm::RunStore& run, const slurm::Witness& witness);

}  // namespace muster
