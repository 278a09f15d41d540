// SPDX-License-Identifier: Apache-2.0
// Turns the frames of a stage's ranks into measurements, case ends, artifacts and progress; hostile content
// becomes errors.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "runner/judge/judge.h"
#include "runner/metrics/catalog.h"
#include "runner/metrics/measurement.h"
#include "runner/plan/plan.h"
#include "runner/record/record.h"

namespace muster {

/// One run of one case on one rank: a case is run `repeat` times.
struct CaseRun {
  const Case* planned = nullptr;
  int repeat = 0;
};

/// A rank's place in the stage.
struct RankSlot {
  int rank = 0;
  std::string device;  ///< id; empty: the rank is for the whole node
  Json deviceJson;     ///< its entry of the inventory, or null
};

/// Collects what one attempt of a stage sends. `runs` is indexed by the frames' `case`.
class FrameCollector {
 public:
  FrameCollector(const PluginSpec& plugin, const TestSpec& test, std::vector<CaseRun> runs, int attempt)
      : plugin_(plugin), test_(test), runs_(std::move(runs)), attempt_(attempt) {}

  /// The group's size, as its measurements carry it where their metric has the labels.
  void setGroup(int ranks, int nodes) {
    group_ = {{kRanksLabel, std::to_string(ranks)}, {kNodesLabel, std::to_string(nodes)}};
  }
  void take(const RankSlot& slot, const Json& frame);

  /// Indices of the runs that this rank has begun or ended, and whether its case is still open.
  [[nodiscard]] const std::set<size_t>& endedRuns(int rank) const;
  /// The run that was begun and not ended, or -1.
  [[nodiscard]] int openRun(int rank) const;
  /// Whether the case of run `index` has not been well so far on this rank.
  [[nodiscard]] bool wentWrong(int rank, size_t index) const;
  /// Records that run `index` (and with it its case) could not be measured on this rank. An error that the
  /// rank caused itself is never replaced by one that it did not.
  void failRun(const RankSlot& slot, size_t index, const std::string& message, const std::string& remedy = "",
               CaseEnd::Cause cause = CaseEnd::Cause::kOwn);

  /// The same where the whole group's end of it is known: `message` goes before what the rank said.
  void overrule(const RankSlot& slot, size_t index, const std::string& message, const std::string& remedy,
                CaseEnd::Cause cause);

  /// The runs of cases that failed on this rank because of another one.
  [[nodiscard]] std::set<size_t> hurtRuns(int rank) const;
  /// Puts `message` before what the rank said of each such case.
  void explain(const RankSlot& slot, const std::string& message, const std::string& remedy);

  /// One end for each case of `runs` and each slot: the worst over its repeats; a case without an end is an
  /// error, `unended` its cause.
  [[nodiscard]] std::vector<CaseEnd> caseEnds(const std::vector<RankSlot>& slots,
                                              CaseEnd::Cause unended = CaseEnd::Cause::kOwn) const;

  [[nodiscard]] const std::vector<CaseRun>& runs() const { return runs_; }
  /// 0..1 over all runs of `slots` ranks.
  [[nodiscard]] double fraction(size_t slots) const;
  [[nodiscard]] const std::string& lastProgress() const { return lastProgress_; }

  std::vector<Measurement> measurements;
  std::vector<ArtifactRecord> artifacts;  ///< path is absolute here; digests are taken when the stage ends
  std::vector<std::string> log;
  double deviceTime = 0;  ///< latest time stamp of a measurement, on the device's clock (virtual on sim)

 private:
  Labels group_;
  struct RankState {
    std::set<size_t> ended;
    int open = -1;
    double openFraction = 0;
    std::map<std::string, CaseEnd> ends;  ///< by case id
    /// By case id: when its first run began, and when the rank last said something in one of them.
    std::map<std::string, std::pair<double, double>> spans;
  };
  [[nodiscard]] bool ranToEnd(const RankState& state, const Case* planned) const;
  void takeCase(const RankSlot& slot, const Json& frame);
  void takeMeasurement(const RankSlot& slot, const Json& frame);
  void takeProgress(const RankSlot& slot, const Json& frame);
  void takeArtifact(const RankSlot& slot, const Json& frame);
  void takeLog(const RankSlot& slot, const Json& frame);
  void rejectReport(const RankSlot& slot, const std::string& message);
  CaseEnd& endOf(const RankSlot& slot, size_t index);
  [[nodiscard]] Labels labelsFor(const MetricSpec& metric, const Case& planned, const RankSlot& slot,
                                 const Json& sent) const;

  const PluginSpec& plugin_;
  const TestSpec& test_;
  std::vector<CaseRun> runs_;
  int attempt_;
  std::map<int, RankState> ranks_;
  std::string lastProgress_;
  std::set<std::string> series_;  ///< metric and labels of what was measured
};

}  // namespace muster
