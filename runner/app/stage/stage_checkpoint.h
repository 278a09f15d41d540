// SPDX-License-Identifier: Apache-2.0
// Keeps what a stage has failed while it still runs: a run that is killed and resumed must not pass for want
// of it.
#pragma once

#include <optional>

#include "runner/app/stage/stage_runner.h"

namespace muster {

class RankGroup;
class StageTelemetry;

/// Of one stage. What has failed is kept once it still stands an interval later: ranks that die in the moment
/// in which the whole run is killed have not failed. Left out are answers of predicates and limits relative
/// to peers, which need the whole stage.
class StageCheckpoint {
 public:
  /// `earlier`: as for runStage().
  StageCheckpoint(const NodeConfig& node, const JudgeContext& context, const StageRecord* earlier);

  /// Call often while `group` runs. `record` and `evidence` are those of the attempts before.
  void poll(const StageRecord& record, const StageEvidence& evidence, const RankGroup& group,
            const StageTelemetry& telemetry);
  /// What went wrong in keeping it.
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  Status look(StageRecord record, StageEvidence evidence);

  const NodeConfig& node_;
  const JudgeContext& context_;
  const StageRecord* earlier_;
  double next_ = 0;                     ///< when to look again
  std::optional<StageRecord> waiting_;  ///< failures that the last look found
  size_t found_ = 0;                    ///< how many
  Status status_;
};

}  // namespace muster
