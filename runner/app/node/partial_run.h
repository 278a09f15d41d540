// SPDX-License-Identifier: Apache-2.0
// Partial runs (--only, --device): their options checked, and the records of what they leave out.
#pragma once

#include "runner/app/node/options.h"
#include "runner/app/stage/stage_runner.h"
#include "runner/plan/plan.h"
#include "runner/record/selection.h"

namespace muster {

/// Fails when --only names a stage that the plan lacks, or one that --scope or --device leave out, and when
/// nothing is left to run: an empty run is no success.
Status checkSelection(const Plan& plan, const RunOptions& options);

/// Fails when --device names a device that the node lacks.
Status checkDevices(const Selection& selection, const std::vector<RankSlot>& devices);

/// The command that starts a run of `plan` with `options` anew on this node, without --out, --only and
/// --device. Simulated: node `rank` of `count` alone.
std::vector<std::string> rerunCommandOf(const Plan& plan, const RunOptions& options, int rank, int count);

/// A stage that is not run on purpose. What a partial run leaves out blocks nothing by itself:
/// selectionStage() does. What a run has no time left for `blocks`, also where the plan allows it to be
/// skipped.
StageOutcome skippedStage(const Stage& stage, bool blocks, const std::string& why);

/// The stage whose required skip keeps a partial run from being accepted.
StageOutcome selectionStage(const Selection& selection);

}  // namespace muster
