// SPDX-License-Identifier: Apache-2.0
// Selects the failed results of an interrupted stage.
#include "runner/app/stage/earlier_attempts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "runner/record/evidence_json.h"

namespace muster {
namespace {

constexpr int kMostAttempts = 1'000'000;  ///< a journal may say anything

/// A waived failure is one as well: it stays waived, and its waiver in use.
bool failed(const Verdict& verdict) {
  const auto isFail = [](const AttemptOutcome& attempt) { return attempt.outcome == Outcome::kFail; };
  return verdict.outcome == Outcome::kFail || verdict.outcome == Outcome::kFlaky ||
         verdict.outcome == Outcome::kWaived ||
         std::any_of(verdict.attempts.begin(), verdict.attempts.end(), isFail);
}

/// The telemetry process has rank -1: it may be lost to the signal that ended the run.
bool failed(const CaseEnd& end) {
  return end.state == CaseEnd::State::kError && end.cause == CaseEnd::Cause::kOwn && end.rank >= 0;
}

/// What identifies a measurement within its stage, as far as its verdicts tell.
template <typename T>
auto keyOf(const T& one) {
  return std::tuple(one.metric, one.caseId, one.rank, one.labels);
}

/// Whether a miss stays one whatever is measured after it: of a text, a count, or the worst sample. The
/// median or the spread of the samples so far says nothing of that of all.
bool isFinal(const Expectation& e, const std::string& unit) {
  if (unit == "text") return true;
  const bool worst = unit == "count" || unit == "bool";
  if (e.kind == CheckKind::kMin) return worst || e.statistic == "min";
  if (e.kind == CheckKind::kMax) return worst || e.statistic == "max";
  return false;
}

/// Where samples were still to come when the run ended: of a case that was to run several times, and of
/// telemetry.
class Unfinished {
 public:
  Unfinished(const std::vector<CaseEnd>& ends, int repeat) {
    for (const CaseEnd& end : ends) {
      if (end.cause != CaseEnd::Cause::kCancelled) continue;
      interrupted_ = true;
      if (repeat > 1) cases_.emplace(end.caseId, end.rank, end.attempt);
    }
  }
  [[nodiscard]] bool has(const Measurement& m) const {
    return m.rank < 0 ? interrupted_ : cases_.count({m.caseId, m.rank, m.attempt}) > 0;
  }

 private:
  bool interrupted_ = false;
  std::set<std::tuple<std::string, int, int>> cases_;
};

/// Removes what has not failed.
StageEvidence onlyFailed(StageEvidence evidence, const StageRecord& stage) {
  const Unfinished unfinished(evidence.ends, stage.repeat);
  std::multimap<std::tuple<std::string, std::string, int, Labels>, const Verdict*> misses;
  for (const Verdict& verdict : stage.verdicts)
    if (failed(verdict)) misses.emplace(keyOf(verdict), &verdict);
  std::erase_if(evidence.measurements, [&](const Measurement& m) {
    const auto [begin, end] = misses.equal_range(keyOf(m));
    return std::none_of(begin, end, [&](const auto& miss) {
      const auto& expectation = miss.second->expectation;
      return !unfinished.has(m) || !expectation || isFinal(*expectation, m.unit);
    });
  });
  std::erase_if(evidence.ends, [](const CaseEnd& end) { return !failed(end); });
  return evidence;
}

template <typename T>
void putBefore(std::vector<T>& list, std::vector<T> earlier, int attempts) {
  for (T& one : list) one.attempt += attempts;
  earlier.insert(earlier.end(), std::make_move_iterator(list.begin()), std::make_move_iterator(list.end()));
  list = std::move(earlier);
}

}  // namespace

Result<size_t> countFailures(const StageRecord& stage) {
  if (stage.state != StageState::kRan) return size_t{0};
  MUSTER_TRY(StageEvidence evidence, evidenceFromRecord(stage));
  evidence = onlyFailed(std::move(evidence), stage);
  return evidence.ends.size() + evidence.measurements.size();
}

Status addEarlierAttempts(const StageRecord& earlier, StageRecord& record, StageEvidence& evidence) {
  MUSTER_TRY(StageEvidence before, evidenceFromRecord(earlier));
  before = onlyFailed(std::move(before), earlier);
  const int attempts = std::clamp(earlier.attempts, 1, kMostAttempts);
  // Telemetry goes on through all attempts: what it saw of one of them is not undone by the next.
  for (Measurement& m : before.measurements)
    if (m.rank < 0) m.attempt = attempts + 1;
  putBefore(evidence.ends, std::move(before.ends), attempts);
  putBefore(evidence.measurements, std::move(before.measurements), attempts);
  putBefore(evidence.externalLoad, std::move(before.externalLoad), attempts);
  putBefore(record.ranks, earlier.ranks, attempts);
  record.attempts += attempts;
  record.log.insert(
      record.log.begin(),
      fmt::format("the run was interrupted in attempt {}; what had failed by then counts", attempts));
  return {};
}

}  // namespace muster
