// SPDX-License-Identifier: Apache-2.0
// Telemetry of one stage: the env plugin's `telemetry` test in a helper process beside it, and what is kept
// of it.
#pragma once

#include <zlib.h>

#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runner/app/stage/stage_runner.h"

namespace muster {

/// Samples every device while a stage runs. On real backends a helper runs beside the ranks; on sim the
/// stage's virtual span is evaluated once it is known. What it finds is judged with the stage, under the case
/// id "telemetry". Counters of errors go on from the last reading of the stage before, which `progress`
/// keeps.
class StageTelemetry {
 public:
  static constexpr const char* kCaseId = "telemetry";

  /// Nothing is sampled around stages of the env plugin: they are observation themselves.
  static bool watches(const Stage& stage) { return stage.plugin != "env"; }
  StageTelemetry(const NodeConfig& node, NodeProgress& progress, const Stage& stage);

  /// Starts the helper and waits for its first readings. Returns why there are none; without them the stage's
  /// ranks must not start, because errors that they meet would be taken for older ones. Empty: there are, or
  /// the stage needs none, or the run was interrupted.
  std::string start();
  /// Forgets what was sampled so far, while the node waited for others. Counters go on.
  void restart();
  void poll();
  /// Ends it (or evaluates the span, on sim), and adds case end, measurements, expectations and series to the
  /// stage.
  void finish(double virtualStart, double virtualEnd, StageRecord& record, StageEvidence& evidence);
  /// While it runs: adds case end, measurements and expectations to the stage as if it ended now.
  void addSoFar(StageEvidence& evidence) const;

 private:
  /// Every reading of one metric of one device (or of the node).
  struct Series {
    std::string metric;
    std::string device;
    Labels labels;
    std::vector<double> time;
    std::vector<double> value;
  };
  [[nodiscard]] RankSpec rankSpec() const;
  [[nodiscard]] GroupOptions options();
  Status setParam(const std::string& name, const Json& value);
  void take(const Json& frame);
  void openRaw();
  void startHelper();
  void noteGrowthBefore();
  void evaluateSimulated(double virtualStart, double virtualEnd);
  void addEvidence(StageEvidence& evidence) const;
  void addMeasurements(StageEvidence& evidence) const;
  void addSeries(StageRecord& record, double begin) const;
  void addExternalLoad(StageEvidence& evidence) const;
  /// Who had the processors between two moments, the busiest first.
  [[nodiscard]] std::string loadedBy(double begin, double end) const;

  const NodeConfig& node_;
  NodeProgress& progress_;
  const Stage& stage_;
  const PluginSpec* plugin_ = nullptr;
  const TestSpec* test_ = nullptr;
  Case case_;
  std::map<std::string, Series> series_;  ///< by metric and labels
  std::unique_ptr<BackgroundRank> helper_;
  std::string problem_;
  bool enabled_ = false;
  bool caseEnded_ = false;
  double begin_ = 0;
  double ready_ = 0;                                        ///< when the first readings were in
  double from_ = -std::numeric_limits<double>::infinity();  ///< earlier samples do not count
  std::vector<std::string> grownBefore_;  ///< counters that had grown when the stage's ranks started
  std::unique_ptr<gzFile_s, int (*)(gzFile)> raw_{nullptr, gzclose};
  std::filesystem::path rawPath_;
};

/// The load over one span of time from samples that each stand for the time since the one before (the first:
/// since `begin`); a span between two samples has the load of the later one.
ExternalLoad loadDuring(const std::vector<double>& times, const std::vector<double>& shares, double begin,
                        double from, double to);

/// At most `most` values that keep every bucket's extremes, so that minima and maxima stay exact.
std::vector<double> thinned(const std::vector<double>& values, size_t most);

/// Where on the axis those values stand: at the begin and in the middle of their buckets, so that all series
/// of the same readings share one axis.
std::vector<double> thinnedTimes(const std::vector<double>& times, size_t most);

}  // namespace muster
