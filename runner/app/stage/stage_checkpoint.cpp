// SPDX-License-Identifier: Apache-2.0
// Judges what a running stage has measured, as if it ended now.
#include "runner/app/stage/stage_checkpoint.h"

#include <algorithm>

#include "runner/app/stage/earlier_attempts.h"
#include "runner/app/stage/rank_group.h"
#include "runner/app/stage/stage_telemetry.h"
#include "runner/core/clock.h"

namespace muster {
namespace {

constexpr double kInterval = 1;      ///< seconds between two looks
constexpr double kShare = 1 / 50.0;  ///< of the time that looking may take

}  // namespace

StageCheckpoint::StageCheckpoint(const NodeConfig& node, const JudgeContext& context,
                                 const StageRecord* earlier)
    : node_(node), context_(context), earlier_(earlier) {
  if (earlier == nullptr) return;
  if (const auto known = countFailures(*earlier); known.ok()) found_ = *known;
}

void StageCheckpoint::poll(const StageRecord& record, const StageEvidence& evidence, const RankGroup& group,
                           const StageTelemetry& telemetry) {
  const double now = systemClock().now();
  if (!status_.ok() || now < next_ || !node_.keepFailures) return;
  StageEvidence soFar = evidence;
  group.addSoFar(soFar);
  telemetry.addSoFar(soFar);
  status_ = look(record, std::move(soFar));
  const double end = systemClock().now();
  next_ = end + std::max(kInterval, (end - now) / kShare);
}

Status StageCheckpoint::look(StageRecord record, StageEvidence evidence) {
  if (waiting_) MUSTER_CHECK_OK(node_.keepFailures(*waiting_));
  waiting_.reset();
  record.artifacts.clear();  // the stage makes them again
  evidence.peersMissing = true;
  if (earlier_ != nullptr) MUSTER_CHECK_OK(addEarlierAttempts(*earlier_, record, evidence));
  judgeInto(record, evidence, context_);
  record.measurements = std::move(evidence.measurements);
  MUSTER_TRY(const size_t failures, countFailures(record));
  if (failures > std::exchange(found_, failures)) waiting_ = std::move(record);
  return {};
}

}  // namespace muster
