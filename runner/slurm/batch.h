// SPDX-License-Identifier: Apache-2.0
// The jobs that one step of a run submits together: a fleet job follows all of them, and where that cannot
// be, none of them is left behind.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "runner/slurm/submission.h"

namespace muster::slurm {

/// A job before it is submitted: which script, with which options of sbatch.
struct JobRequest {
  SubmittedJob job;  ///< without its number
  std::vector<std::string> options;
};

class Batch {
 public:
  /// A step of the run's round number `round`; `before` are the jobs that it has submitted already.
  Batch(const RunStore& run, int round, const std::vector<SubmittedJob>& before)
      : run_(run), round_(round), before_(jobNumbers(before)) {}

  /// Submits one job and keeps its number in the run folder.
  Status send(JobRequest request);
  /// A job that only this node can take, for the first `most` nodes that Slurm takes one for. It leaves the
  /// queue when it cannot begin in time. A node that Slurm has no such job for (it left the partition, or
  /// lacks what the jobs ask for) is left out and named; an error where that are all.
  Status sendPinned(const std::vector<std::string>& nodes, size_t most);
  /// One job over all of these nodes, for the stages of scope cluster.
  Status sendCluster(const std::vector<std::string>& nodes);
  /// The fleet job, after all that were submitted so far.
  Status sendFleet();
  /// The same, for as many of the jobs as Slurm takes: it may have a limit that it shows nobody
  /// (MaxSubmitJobs of an association or a QOS). The last ones are given up until the fleet job is taken.
  Status sendFleetAfterWhatFits();

  [[nodiscard]] const std::vector<std::string>& numbers() const { return numbers_; }
  /// The nodes that sendPinned() left out.
  [[nodiscard]] const std::vector<std::string>& refused() const { return refused_; }
  /// Cancels every job of this step. Returns `error` with what became of them and how to go on.
  Error takeBack(Error error) const;

 private:
  const RunStore& run_;
  int round_;
  std::set<std::string> before_;
  std::vector<std::string> numbers_;  ///< in the order of their submission
  std::vector<std::string> refused_;
};

/// "--dependency=afterany:17:18".
std::string after(const std::vector<std::string>& jobs);

}  // namespace muster::slurm
