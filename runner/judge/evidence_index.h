// SPDX-License-Identifier: Apache-2.0
// The evidence of a stage, ordered for judging: the result of each case on each rank, and samples merged over
// repeats.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runner/judge/judge.h"
#include "runner/judge/series.h"

namespace muster {

/// The samples of all repeats of one measurement in one attempt.
struct Merged {
  std::vector<double> samples;
  Summary summary;                      ///< of the samples; made once, whatever the number of expectations
  std::optional<WorstStretch> stretch;  ///< likewise, where a drop is limited
  std::vector<std::string> texts;       ///< each once
  std::vector<size_t> sources;          ///< indices into StageEvidence::measurements
  std::string problem;  ///< why no verdict can rest on it: NaN, no sample, another unit ...; empty if none
};

/// One measurement: same metric, case, rank, device and labels.
struct Group {
  std::string metric;
  std::string caseId;
  int rank = 0;
  std::string device;
  Labels labels;
  std::string unit;
  Direction direction = Direction::kNone;
  std::string peak;
  bool informational = true;
  Series series = Series::kNone;
  double window = 0;
  std::map<int, Merged> attempts;
  /// The first and most specific drop_max expectation in force, or nullptr. It also says how a stretch of
  /// time below another limit counts.
  const Expectation* dropLimit = nullptr;

  [[nodiscard]] bool isText() const { return unit == "text"; }
  [[nodiscard]] const Merged& last() const { return attempts.rbegin()->second; }
  /// Whether a drop_max expectation applies: of those that match, the plan's, else the profile's, else the
  /// built-in ones.
  [[nodiscard]] bool dropsLimitedBy(const Expectation& e) const;
};

/// One case on one rank, over all attempts.
struct CaseRank {
  std::string caseId;
  int rank = 0;
  std::string device;
  std::map<int, CaseEnd> ends;  ///< by attempt; the worst, should one attempt have ended twice
  std::vector<const Group*> groups;

  [[nodiscard]] int lastAttempt() const { return ends.rbegin()->first; }
  [[nodiscard]] const CaseEnd& lastEnd() const { return ends.rbegin()->second; }
  [[nodiscard]] bool endedWell() const { return lastEnd().state == CaseEnd::State::kOk; }
};

/// Points into the evidence it was built from, which must outlive it.
class EvidenceIndex {
 public:
  explicit EvidenceIndex(const StageEvidence& evidence);

  [[nodiscard]] const StageEvidence& evidence() const { return evidence_; }
  [[nodiscard]] const std::vector<std::unique_ptr<CaseRank>>& caseRanks() const { return caseRanks_; }
  [[nodiscard]] const std::vector<std::unique_ptr<Group>>& groups() const { return groups_; }
  /// Groups whose case and rank have no end at all: nobody planned them.
  [[nodiscard]] const std::vector<const Group*>& strays() const { return strays_; }
  [[nodiscard]] const CaseRank* caseRank(const std::string& caseId, int rank) const;
  /// Devices that ranks of this stage are bound to.
  [[nodiscard]] const std::set<std::string>& devices() const { return devices_; }

 private:
  void addEnd(const CaseEnd& end);
  void addMeasurement(size_t index);
  void addMissingEnds();
  void addDropLimits();
  void summarizeAll();

  const StageEvidence& evidence_;
  std::vector<std::unique_ptr<CaseRank>> caseRanks_;
  std::vector<std::unique_ptr<Group>> groups_;
  std::map<std::string, Group*> groupByKey_;
  std::set<std::pair<const Merged*, std::string_view>> texts_;
  std::map<std::pair<std::string, int>, CaseRank*> caseRankByKey_;
  std::vector<const Group*> strays_;
  std::set<std::string> devices_;
};

}  // namespace muster
