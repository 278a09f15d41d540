// SPDX-License-Identifier: Apache-2.0
#include "runner/app/stage/earlier_attempts.h"

#include <gmock/gmock.h>

#include "runner/app/stage/stage_runner.h"

namespace muster {
namespace {

constexpr const char* kRate = "compute.gemm";
constexpr const char* kXid = "env.xid_fatal";

Expectation limit(const char* metric, CheckKind kind, double value) {
  Expectation e;
  e.metric = metric;
  e.kind = kind;
  e.limit = value;
  e.unit = "count";
  e.origin = "plan";
  return e;
}

/// One attempt of a stage with two cases on one device, and telemetry beside it.
StageEvidence attempt() {
  StageEvidence evidence;
  evidence.stage = "gemm";
  for (const char* id : {"a", "b"}) evidence.caseMetrics[id] = {kRate};
  evidence.caseMetrics["telemetry"] = {kXid};
  evidence.expectations = {limit(kRate, CheckKind::kMin, 10), limit(kXid, CheckKind::kMax, 0)};
  return evidence;
}

void ends(StageEvidence& evidence, const char* id, CaseEnd::State state = CaseEnd::State::kOk,
          CaseEnd::Cause cause = CaseEnd::Cause::kOwn) {
  CaseEnd end{id, id == std::string("telemetry") ? -1 : 0, "gpu0", 1, state, "why", ""};
  end.cause = cause;
  evidence.ends.push_back(end);
}

void measures(StageEvidence& evidence, const char* id, double value) {
  Measurement m;
  m.metric = id == std::string("telemetry") ? kXid : kRate;
  m.unit = "count";
  m.caseId = id;
  m.rank = id == std::string("telemetry") ? -1 : 0;
  m.device = "gpu0";
  m.samples = {value};
  evidence.measurements.push_back(m);
}

StageRecord recordOf(const StageEvidence& evidence) {
  StageRecord record;
  record.name = evidence.stage;
  judgeInto(record, evidence, {});
  record.measurements = evidence.measurements;
  record.ranks.push_back({});
  return record;
}

/// Case a measured `rate`, then the run was interrupted in case b.
StageRecord interruptedStage(double rate) {
  StageEvidence evidence = attempt();
  ends(evidence, "a");
  measures(evidence, "a", rate);
  ends(evidence, "b", CaseEnd::State::kError, CaseEnd::Cause::kCancelled);
  ends(evidence, "telemetry");
  measures(evidence, "telemetry", 0);
  return recordOf(evidence);
}

/// The stage again after `earlier`, now well.
StageRecord wellAfter(const StageRecord& earlier) {
  StageEvidence evidence = attempt();
  for (const char* id : {"a", "b"}) {
    ends(evidence, id);
    measures(evidence, id, 12);
  }
  ends(evidence, "telemetry");
  measures(evidence, "telemetry", 0);
  StageRecord record = recordOf(evidence);
  const Status added = addEarlierAttempts(earlier, record, evidence);
  EXPECT_TRUE(added.ok()) << added.error().text();
  EXPECT_TRUE(judgeInto(record, evidence, {}).balanced());
  record.measurements = evidence.measurements;
  return record;
}

std::map<std::string, Outcome> outcomes(const StageRecord& record) {
  std::map<std::string, Outcome> all;
  for (const Verdict& verdict : record.verdicts) all[verdict.caseId] = verdict.outcome;
  return all;
}

TEST(EarlierAttempts, OfAHealthyStageAreNone) {
  const StageRecord earlier = interruptedStage(12);
  EXPECT_EQ(countFailures(earlier).value(), 0u);
  EXPECT_EQ(wellAfter(earlier).outcome, Outcome::kPass);
}

TEST(EarlierAttempts, MakeAFailureThatThenPassesFlaky) {
  const StageRecord earlier = interruptedStage(8);
  ASSERT_GT(countFailures(earlier).value(), 0u);
  const StageRecord record = wellAfter(earlier);
  EXPECT_EQ(record.attempts, 2);
  EXPECT_EQ(record.ranks.size(), 2u);
  EXPECT_EQ(record.ranks[0].attempt, 1);
  EXPECT_EQ(record.ranks[1].attempt, 2);
  const std::map<std::string, Outcome> wanted = {
      {"a", Outcome::kFlaky}, {"b", Outcome::kPass}, {"telemetry", Outcome::kPass}};
  EXPECT_EQ(outcomes(record), wanted);
  for (const Verdict& verdict : record.verdicts) {
    if (verdict.caseId != "a") continue;
    ASSERT_EQ(verdict.attempts.size(), 2u);
    EXPECT_EQ(verdict.attempts[0].outcome, Outcome::kFail);
    EXPECT_DOUBLE_EQ(verdict.attempts[0].observed, 8);
    EXPECT_EQ(verdict.attempts[1].attempt, 2);
  }
}

TEST(EarlierAttempts, AddUpOverInterruptions) {
  StageRecord earlier = interruptedStage(8);
  StageEvidence evidence = attempt();
  ends(evidence, "a", CaseEnd::State::kError, CaseEnd::Cause::kCancelled);
  ends(evidence, "b", CaseEnd::State::kError, CaseEnd::Cause::kCancelled);
  StageRecord second = recordOf(evidence);
  ASSERT_TRUE(addEarlierAttempts(earlier, second, evidence).ok());
  judgeInto(second, evidence, {});
  second.measurements = evidence.measurements;
  EXPECT_EQ(outcomes(second)["a"], Outcome::kFail) << "nothing has passed since";
  ASSERT_GT(countFailures(second).value(), 0u);
  const StageRecord record = wellAfter(second);
  EXPECT_EQ(record.attempts, 3);
  EXPECT_EQ(outcomes(record)["a"], Outcome::kFlaky);
}

TEST(EarlierAttempts, CountACaseThatItsOwnRankFailedAndNoOther) {
  for (const auto cause : {CaseEnd::Cause::kOwn, CaseEnd::Cause::kGroup, CaseEnd::Cause::kCancelled}) {
    StageEvidence evidence = attempt();
    ends(evidence, "a", CaseEnd::State::kError, cause);
    ends(evidence, "b", CaseEnd::State::kError, CaseEnd::Cause::kCancelled);
    const StageRecord earlier = recordOf(evidence);
    const bool own = cause == CaseEnd::Cause::kOwn;
    EXPECT_EQ(countFailures(earlier).value(), own ? 1u : 0u);
    EXPECT_EQ(wellAfter(earlier).outcome, own ? Outcome::kFlaky : Outcome::kPass);
  }
}

/// What a case that was to run three times had measured in the first of them.
TEST(EarlierAttempts, OfACaseWithRunsToComeCountWhatNoRunCanUndo) {
  struct Sight {
    CheckKind kind;
    const char* statistic;
    const char* unit;
    double limit;
    bool counts;
  };
  for (const Sight& sight :
       {Sight{CheckKind::kMin, "median", "B/s", 10, false}, Sight{CheckKind::kMin, "mean", "B/s", 10, false},
        Sight{CheckKind::kMin, "min", "B/s", 10, true}, Sight{CheckKind::kMax, "median", "B/s", 7, false},
        Sight{CheckKind::kMax, "max", "B/s", 7, true}, Sight{CheckKind::kMax, "median", "count", 7, true},
        Sight{CheckKind::kCvMax, "median", "B/s", 0.1, false}}) {
    for (const auto cause : {CaseEnd::Cause::kCancelled, CaseEnd::Cause::kOwn}) {
      StageEvidence evidence = attempt();
      evidence.expectations = {limit(kRate, sight.kind, sight.limit), limit(kXid, CheckKind::kMax, 0)};
      evidence.expectations[0].statistic = sight.statistic;
      evidence.expectations[0].unit = sight.unit;
      ends(evidence, "a", cause == CaseEnd::Cause::kOwn ? CaseEnd::State::kOk : CaseEnd::State::kError,
           cause);
      measures(evidence, "a", 8);
      evidence.measurements.back().unit = sight.unit;
      evidence.measurements.back().samples = {8, 8, 4};
      ends(evidence, "b", CaseEnd::State::kError, CaseEnd::Cause::kCancelled);
      ends(evidence, "telemetry");
      measures(evidence, "telemetry", 0);
      StageRecord earlier = recordOf(evidence);
      earlier.repeat = 3;
      const bool ended = cause == CaseEnd::Cause::kOwn;
      EXPECT_EQ(countFailures(earlier).value() > 0, sight.counts || ended)
          << checkKindName(sight.kind) << ' ' << sight.statistic << ' ' << sight.unit
          << (ended ? " of all" : "");
    }
  }
}

TEST(EarlierAttempts, StayFailedInTelemetry) {
  StageEvidence evidence = attempt();
  ends(evidence, "a", CaseEnd::State::kError, CaseEnd::Cause::kCancelled);
  ends(evidence, "telemetry", CaseEnd::State::kError);
  measures(evidence, "telemetry", 1);
  const StageRecord earlier = recordOf(evidence);
  ASSERT_GT(countFailures(earlier).value(), 0u);
  EXPECT_EQ(outcomes(wellAfter(earlier))["telemetry"], Outcome::kFail) << "an XID does not pass";
}

TEST(EarlierAttempts, KeepAWaivedFailure) {
  StageRecord earlier = interruptedStage(8);
  for (Verdict& verdict : earlier.verdicts)
    if (verdict.outcome == Outcome::kFail) verdict.outcome = Outcome::kWaived;
  ASSERT_GT(countFailures(earlier).value(), 0u);
  EXPECT_EQ(outcomes(wellAfter(earlier))["a"], Outcome::kFlaky) << "its waiver covers that as well";
}

}  // namespace
}  // namespace muster
