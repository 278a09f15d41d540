// SPDX-License-Identifier: Apache-2.0
// Telemetry of one stage: the env plugin's `telemetry` test in a helper process beside it, and what is kept of it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runner/app/stage_runner.h"

namespace muster {

/// Samples every device while a stage runs. On real backends a helper runs beside the ranks; on sim the stage's virtual
/// span is evaluated once it is known. What it finds is judged with the stage, under the case id "telemetry".
class StageTelemetry {
 public:
  static constexpr const char* kCaseId = "telemetry";

  /// Nothing is sampled around stages of the env plugin: they are observation themselves.
  StageTelemetry(NodeContext& node, const Stage& stage);

  /// Starts the helper and waits for its first readings.
  void start();
  void poll();
  /// Ends it (or evaluates the span, on sim), and adds case end, measurements, expectations and series to the stage.
  void finish(double virtualStart, double virtualEnd, StageRecord& record, StageEvidence& evidence);

 private:
  struct Series {
    std::vector<double> time;
    std::vector<double> value;
  };
  [[nodiscard]] RankSpec rankSpec(const Json& params) const;
  [[nodiscard]] GroupOptions options();
  void take(const Json& frame);
  void evaluateSimulated(double virtualStart, double virtualEnd);
  void addSeries(StageRecord& record) const;
  Status keepRaw(StageRecord& record) const;

  NodeContext& node_;
  const Stage& stage_;
  const PluginSpec* plugin_ = nullptr;
  const TestSpec* test_ = nullptr;
  Case case_;
  std::unique_ptr<FrameCollector> collector_;
  std::unique_ptr<BackgroundRank> helper_;
  std::string problem_;
  std::vector<std::pair<double, Json>> frames_;  ///< raw measurement frames with their time, for the compressed artifact
  double begin_ = 0;
};

}  // namespace muster
