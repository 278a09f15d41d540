// SPDX-License-Identifier: Apache-2.0
// What Slurm itself says of how a run's jobs ended, beside what the run folder says. Any process of the
// folder's owner, on whatever node, could have written the folder; only Slurm knows what ran where.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "runner/slurm/scheduler.h"
#include "runner/slurm/submission.h"

namespace muster::slurm {

/// How a node's part of a run ended.
struct NodeEnd {
  enum class Standing {
    kConfirmed,     ///< Slurm and the folder agree
    kForgotten,     ///< Slurm does not know the job any more; the folder alone says so
    kContradicted,  ///< no job of the run ended there as the folder says
  };
  Standing standing = Standing::kContradicted;
  int exitCode = -1;  ///< unless contradicted
  std::string job;    ///< the number that it has as SLURM_JOB_ID; may be empty
  std::string why;    ///< unless confirmed: one line
  int64_t start = 0;  ///< of the job, if confirmed: seconds since 1970, by the controller's clock
  int64_t end = 0;
};

/// Seconds by which the clocks of nodes, controller and submitting host may differ; munge allows no more.
constexpr double kMaxClockSkew = 300;

class Witness {
 public:
  /// Asks squeue, and sacct for the jobs that Slurm has forgotten.
  static Result<Witness> ask(const RunStore& run);
  /// From what Slurm said; `owner` is who submitted the run.
  Witness(const RunStore& run, std::vector<SubmittedJob> submitted, const std::vector<JobInfo>& jobs,
          uid_t owner);

  /// The task that has claimed the node: of this run and user, begun after the run was submitted, on that
  /// node alone, ended with the code in exits/NODE.
  [[nodiscard]] NodeEnd ofNode(const std::string& node) const;
  /// The node's part in the last cluster job. Slurm keeps one exit code for all parts, the greatest: where
  /// every part claims a smaller one, none is believed.
  [[nodiscard]] NodeEnd ofCluster(const std::string& node) const;
  /// The last fleet job, and fleet.exit.
  [[nodiscard]] NodeEnd ofFleet() const;
  /// The nodes of the last cluster job.
  [[nodiscard]] std::vector<std::string> clusterNodes() const;
  /// Who submitted the run: all of its files are his.
  [[nodiscard]] uid_t owner() const { return owner_; }

 private:
  [[nodiscard]] const SubmittedJob* last(JobKind kind) const;
  /// What Slurm says of a job of this run that has ended; `found` is nullptr where it says nothing.
  [[nodiscard]] NodeEnd judge(const JobInfo* found, const std::string& number) const;
  /// The exit code that the node's part left; -1: none.
  [[nodiscard]] int partOf(const std::string& node) const;
  RunStore run_;
  std::vector<SubmittedJob> submitted_;
  std::map<std::string, JobInfo> byNumber_;
  uid_t owner_;
  int greatestPart_ = -1;  ///< of the last cluster job's parts
  bool allParts_ = false;  ///< each of them left an exit code
};

}  // namespace muster::slurm
