// SPDX-License-Identifier: Apache-2.0
// How many more jobs Slurm takes, and what becomes of a run that needs more than that.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runner/core/result.h"
#include "runner/slurm/scheduler.h"
#include "runner/slurm/submission.h"

namespace muster::slurm {

/// Jobs that a run can be in the queue with, at least: one that works, the fleet job, and the next fleet job.
constexpr int kLeastJobs = 3;

/// How many jobs may still be submitted, and which limit says so.
struct QueueRoom {
  int jobs = 0;
  std::string why;  ///< "MaxJobCount is 10000, and Slurm knows 9998 jobs"
};

/// What MaxJobCount leaves: each task of an array counts, and so does a job that ended less than MinJobAge
/// ago. Pure. kProtocol when the value is no number.
Result<QueueRoom> queueRoom(const std::map<std::string, std::string>& configuration, size_t known);

/// Asks Slurm, then does the same; together with the limit that the user set for the run (--most-jobs), of
/// which `own` jobs are in the queue already.
Result<QueueRoom> askQueueRoom(const JobSettings& jobs, int own);

/// kUsage, with what to do, when the room is too small for any run.
Status checkRoom(const QueueRoom& room);

}  // namespace muster::slurm
