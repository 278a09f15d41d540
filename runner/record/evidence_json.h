// SPDX-License-Identifier: Apache-2.0
// What the judge needed of a stage, as the record keeps it, so that `muster judge` can judge the samples
// again.
#pragma once

#include "runner/judge/judge.h"
#include "runner/record/record.h"

namespace muster {

/// Everything of the evidence but the measurements, which the stage's record holds itself.
Json evidenceToJson(const StageEvidence& evidence);

/// The evidence of a recorded stage, measurements included.
Result<StageEvidence> evidenceFromRecord(const StageRecord& stage);

}  // namespace muster
