// SPDX-License-Identifier: Apache-2.0
// What a stage had failed before its run was interrupted: it counts as an earlier attempt when the stage runs
// again.
#pragma once

#include "runner/judge/judge.h"
#include "runner/record/record.h"

namespace muster {

/// Measurements of `stage` that missed a requirement in any of its attempts, and cases that ended in an error
/// of their own rank.
Result<size_t> countFailures(const StageRecord& stage);

/// Puts the failed results of `earlier`, an interrupted run of this stage, before those of `record` and
/// `evidence`, whose attempts are then counted on from there. What was not failed is left out: an interrupted
/// case has fewer samples than its requirements are made for.
Status addEarlierAttempts(const StageRecord& earlier, StageRecord& record, StageEvidence& evidence);

}  // namespace muster
