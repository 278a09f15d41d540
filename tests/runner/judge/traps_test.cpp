// SPDX-License-Identifier: Apache-2.0
// The ways in which other tools passed sick machines: each must end here in fail, flaky or error.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "tests/runner/judge/evidence.h"

namespace muster {
namespace {
using namespace testing;
using ::testing::HasSubstr;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

/// The exit code of a node whose only stage is this one.
int exitCode(const Story& story) {
  DecisionInput input;
  input.accounting = story.judge().accounting;
  return decide(input).exitCode;
}

void expectError(const Story& story, const std::string& why) {
  const Verdict v = story.verdict();
  EXPECT_EQ(v.outcome, Outcome::kError) << v.detail;
  EXPECT_THAT(v.detail, HasSubstr(why));
  EXPECT_EQ(exitCode(story), 3);
}

Story healthy() {
  return Story().ends(0).measures(0, {7e14});
}

TEST(Traps, ThresholdZeroNeverPasses) {
  expectError(healthy().expects(atLeast(0)), "a minimum of 0 FLOP/s can never fail");
  expectError(healthy().expects(atLeast(-1)), "can never fail");
  expectError(healthy().expects(expecting(CheckKind::kBaseline, 0)),
              "a baseline of 0 FLOP/s compares with nothing");
}

TEST(Traps, LimitsThatNothingCanMissAreErrors) {
  Expectation tolerant = expecting(CheckKind::kBaseline, 6e14);
  for (const double tolerance : {1.0, 2.0, -0.1, kNaN}) {
    tolerant.tolerance = tolerance;
    expectError(healthy().expects(tolerant), "its tolerance of");
  }
  for (const double share : {0.0, -0.5, 1.01, kNaN})
    EXPECT_EQ(exitCode(healthy().expects(expecting(CheckKind::kOfPeak, share))), 3) << share;
  for (const double limit : {kNaN, kInf, -kInf}) {
    expectError(healthy().expects(atLeast(limit)), "not a finite number");
    expectError(healthy().expects(expecting(CheckKind::kMax, limit)), "not a finite number");
  }
  Expectation banded = atLeast(6e14);
  banded.warnBand = kNaN;
  expectError(healthy().expects(banded), "its warning band of");
  Expectation odd = atLeast(6e14);
  odd.statistic = "best";
  expectError(healthy().expects(odd), "its statistic \"best\"");
}

TEST(Traps, AnEmptyListOfAllowedValuesIsAnError) {
  expectError(Story().ends(0).says(0, "x").expects(onText(CheckKind::kOneOf, {})), "allowed values is empty");
  expectError(Story().ends(0).says(0, "x").expects(onText(CheckKind::kEquals, {})),
              "no text to compare with");
}

TEST(Traps, AMissingReferenceIsAnError) {
  Story story = healthy().expects(expecting(CheckKind::kOfPeak, 0.7));
  story.evidence.measurements[0].peak = "flops.bf16";
  expectError(story, "no peak \"flops.bf16\" is known");
}

TEST(Traps, AnEmptyResultIsAnError) {
  expectError(Story().ends(0).expects(atLeast(6.5e14)), "no measurement for compute.gemm_throughput");
  expectError(Story().ends(0), "passed without a measurement");
  expectError(Story(), "case gemm has no result");
  Story nothing;
  nothing.evidence.caseMetrics.clear();
  expectError(nothing, "the stage ran no case at all");
  expectError(Story().ends(0).measures(0, std::vector<double>{}).expects(atLeast(1)), "it has no sample");
}

TEST(Traps, AllSkippedIsNotASuccess) {
  const Story story =
      Story().ends(0, CaseEnd::State::kUnsupported, "no GPU").ends(1, CaseEnd::State::kUnsupported, "no GPU");
  EXPECT_EQ(story.outcomes(), "skipped skipped");
  EXPECT_EQ(exitCode(story), 3);
  Story optional = story;
  optional.evidence.required = false;
  EXPECT_EQ(exitCode(optional), 3) << "nothing was judged at all";
}

TEST(Traps, OneGpuInPlaceOfAllIsAnErrorForEachMissingOne) {
  Story story;
  for (int rank = 0; rank < 8; ++rank) story.ends(rank);
  story.measures(0, {7e14}).expects(atLeast(6.5e14));
  EXPECT_EQ(story.outcomes(), "pass error error error error error error error");
  EXPECT_EQ(exitCode(story), 3);
}

TEST(Traps, ANodeWideRankMustReportEveryDevice) {
  Story story;
  story.declare("telemetry").ends(-1, CaseEnd::State::kOk, "", 1, "telemetry");
  for (int rank = 0; rank < 3; ++rank) {
    story.ends(rank).measures(rank, {7e14});
    if (rank == 1) continue;
    Measurement m;
    m.metric = "env.temperature";
    m.unit = "degC";
    m.samples = {60};
    story.measures(rank, m, 1, "telemetry");
    story.evidence.measurements.back().rank = -1;
  }
  Expectation cool = expectingOf("env.temperature", "degC", CheckKind::kMax, 85);
  cool.origin = "standing";
  story.expects(atLeast(6.5e14));
  story.evidence.caseMetrics["gemm"].erase("env.temperature");
  story.evidence.caseMetrics["telemetry"] = {"env.temperature"};
  story.expects(cool);
  EXPECT_EQ(story.outcomes(), "pass pass pass pass pass error");
  EXPECT_EQ(story.judge().verdicts.back().device, "gpu1");
}

TEST(Traps, NanNeverComparesAsMet) {
  for (const double bad : {kNaN, kInf, -kInf}) {
    expectError(Story().ends(0).measures(0, {7e14, bad}).expects(atLeast(6.5e14)),
                "1 of 2 samples are NaN or infinite");
    expectError(Story().ends(0).measures(0, {bad}).expects(expecting(CheckKind::kMax, 1e18)),
                "NaN or infinite");
    expectError(Story().ends(0).measures(0, {bad}).expects(
                    expectingOf("compute.gemm_throughput", "FLOP/s", CheckKind::kEquals, bad)),
                "not a finite number");
  }
  expectError(Story().ends(0).measures(0, {kNaN}), "NaN");  // also where nothing is expected of it
}

TEST(Traps, NanIsAnErrorEvenWhenItWasOnlyInformation) {
  Story story = Story().ends(0).measures(0, {kNaN});
  story.evidence.measurements[0].informational = true;
  expectError(story, "NaN");
}

TEST(Traps, NegativeDurationsAndRatesAreErrors) {
  expectError(Story().ends(0).measures(0, {-1}).expects(expecting(CheckKind::kMax, 1)),
              "a sample is negative");
  for (const char* unit : {"s", "B/s", "B", "samples/s", "count/s", "Hz", "W"}) {
    Story story = Story().ends(0).measures(0, {-1e-9});
    story.evidence.measurements[0].unit = unit;
    expectError(story, "a sample is negative");
  }
}

TEST(Traps, AnotherUnitIsAnError) {
  Story story = healthy().expects(atLeast(6.5e14));
  story.evidence.measurements[0].unit = "OP/s";
  expectError(story, "unit mismatch: measured in OP/s, the expectation is in FLOP/s");
  story.evidence.expectations[0].unit = "";
  expectError(story, "the expectation is in no unit");
  story.evidence.measurements[0].unit = "furlong";
  expectError(story, "is not a base unit");
  expectError(Story().ends(0).says(0, "fast").expects(expectingOf(kDriver, "text", CheckKind::kMax, 1)),
              "the measurement is text");
}

TEST(Traps, AUnitThatChangesBetweenRepeatsIsAnError) {
  Story story = healthy().measures(0, {7e14}).expects(atLeast(6.5e14));
  story.evidence.measurements[1].unit = "OP/s";
  expectError(story, "its unit changed from FLOP/s to OP/s");
}

TEST(Traps, AThirdOfTheFlopsFails) {
  const Story story = Story().ends(0).measures(0, {2.4e14}).expects(atLeast(6.5e14));
  EXPECT_EQ(story.verdict().outcome, Outcome::kFail);
  EXPECT_EQ(exitCode(story), 1);
}

TEST(Traps, ZeroProgressFails) {
  EXPECT_EQ(exitCode(Story().ends(0).measures(0, {0}).expects(atLeast(6.5e14))), 1);
}

TEST(Traps, AnInitErrorIsNotOk) {
  expectError(Story().ends(0, CaseEnd::State::kError, "cudaErrorMemoryAllocation"),
              "cudaErrorMemoryAllocation");
  expectError(Story().ends(0, CaseEnd::State::kError), "no reason was given");
}

TEST(Traps, ATimeoutOfOneRankIsNotHiddenByTheOthers) {
  Story story;
  for (int rank = 0; rank < 3; ++rank) story.ends(rank).measures(rank, {7e14});
  story.ends(3, CaseEnd::State::kError, "rank 3 on gpu3 passed its deadline").expects(atLeast(6.5e14));
  EXPECT_EQ(story.outcomes(), "error pass pass pass");
  EXPECT_EQ(exitCode(story), 3);
}

TEST(Traps, RetryUntilPassIsFlaky) {
  Story story;
  for (int attempt = 1; attempt <= 5; ++attempt)
    story.ends(0, CaseEnd::State::kOk, "", attempt)
        .measures(0, {attempt == 5 ? 7e14 : 1e14}, kThroughput, attempt);
  story.expects(atLeast(6.5e14));
  EXPECT_EQ(story.verdict().outcome, Outcome::kFlaky);
  EXPECT_EQ(story.verdict().attempts.size(), 5u);
  EXPECT_EQ(exitCode(story), 1);
}

TEST(Traps, AFailureIsOpenOnlyWhereItWasBeingTriedAgainWhenTheRunWasInterrupted) {
  const auto cancelled = [](Story& story, int rank, int attempt) {
    story.ends(rank, CaseEnd::State::kError, "it was told to stop", attempt);
    story.evidence.ends.back().cause = CaseEnd::Cause::kCancelled;
  };
  const auto failed = [](const Story& story) {
    for (const Verdict& v : story.judge().verdicts)
      if (!v.metric.empty() && v.outcome != Outcome::kPass) return v;
    return Verdict{};
  };
  for (const bool allowed : {true, false}) {
    Story again;
    again.evidence.allowFlaky = allowed;
    again.expects(atLeast(6.5e14)).ends(0).measures(0, {1e14});
    cancelled(again, 0, 2);
    EXPECT_EQ(failed(again).outcome, allowed ? Outcome::kError : Outcome::kFail);
    EXPECT_EQ(exitCode(again), allowed ? 3 : 1);
    if (!allowed) continue;
    EXPECT_THAT(failed(again).detail, HasSubstr("the run was interrupted in attempt 2"));
    ASSERT_EQ(failed(again).attempts.size(), 1u) << "what was measured is not lost";
    EXPECT_EQ(failed(again).attempts.front().outcome, Outcome::kFail);
  }
  Story first;  // nobody tries it again: the attempt may have been the last
  first.evidence.allowFlaky = true;
  first.expects(atLeast(6.5e14)).measures(0, {1e14});
  cancelled(first, 0, 1);
  EXPECT_EQ(failed(first).outcome, Outcome::kFail);
  Story other;  // it has used its attempts, another rank has not
  other.evidence.allowFlaky = true;
  other.expects(atLeast(6.5e14));
  for (const int attempt : {1, 2}) other.ends(0, CaseEnd::State::kOk, "", attempt);
  for (const int attempt : {1, 2}) other.measures(0, {1e14}, kThroughput, attempt);
  cancelled(other, 1, 2);
  EXPECT_EQ(failed(other).outcome, Outcome::kFail);
  Story telemetry;  // goes on through all attempts
  telemetry.evidence.allowFlaky = true;
  telemetry.expects(expectingOf("env.temperature", "degC", CheckKind::kMax, 80)).ends(-1);
  telemetry.measures(-1, {95}, "env.temperature");
  cancelled(telemetry, -1, 2);
  cancelled(telemetry, 0, 2);
  EXPECT_EQ(failed(telemetry).outcome, Outcome::kFail);
}

/// Other work on the host is gone when it is tried again: nothing failed.
TEST(Traps, AConditionThatARetryDoesNotMeetAgainMakesNothingFlaky) {
  Expectation condition = expectingOf("compute.wrong", "count", CheckKind::kMax, 0);
  condition.origin = "condition";
  Story story;
  story.expects(condition).ends(0).ends(0, CaseEnd::State::kOk, "", 2);
  story.measures(0, {1}, "compute.wrong").measures(0, {0}, "compute.wrong", 2);
  EXPECT_EQ(story.outcomes(), "pass");
  EXPECT_EQ(story.verdict().attempts.front().outcome, Outcome::kError);

  // What names a part stays open, unless the plan allows flaky results.
  for (const auto& [label, allowFlaky, outcomes] : {std::tuple{"processes", false, "warn pass"},
                                                    {"culprit", true, "warn pass"},
                                                    {"culprit", false, "error pass"}}) {
    Story found;
    found.evidence.findingLabels["compute.wrong"] = {label};
    found.evidence.allowFlaky = allowFlaky;
    found.expects(condition).ends(0).ends(0, CaseEnd::State::kOk, "", 2);
    for (const auto& [attempt, name] : {std::pair{1, "a or b"}, {2, "none"}}) {
      Measurement m;
      m.metric = "compute.wrong";
      m.unit = "count";
      m.direction = Direction::kLower;
      m.samples = {attempt == 1 ? 1.0 : 0.0};
      m.labels = {{label, name}};
      found.measures(0, std::move(m), attempt, "gemm");
    }
    EXPECT_EQ(found.outcomes(), outcomes) << label;
    EXPECT_THAT(found.judge().verdicts[0].detail, HasSubstr("not found in attempt 2"));
  }
}

TEST(Traps, ACrashThatWasRetriedIsFlakyToo) {
  const Story story = Story()
                          .ends(0, CaseEnd::State::kError, "SIGSEGV")
                          .ends(0, CaseEnd::State::kOk, "", 2)
                          .measures(0, {7e14}, kThroughput, 2)
                          .expects(atLeast(6.5e14));
  EXPECT_EQ(story.outcomes(), "flaky pass");
  EXPECT_EQ(story.judge().verdicts[0].detail, "gpu0: failed in attempt 1 (SIGSEGV) and passed in attempt 2");
  EXPECT_EQ(exitCode(story), 1);
}

TEST(Traps, ARetryThatClaimsToBeUnsupportedIsAnError) {
  const Story story = Story()
                          .ends(0)
                          .measures(0, {1e14})
                          .ends(0, CaseEnd::State::kUnsupported, "no bf16", 2)
                          .expects(atLeast(6.5e14));
  EXPECT_EQ(story.outcomes(), "error fail");
  EXPECT_EQ(exitCode(story), 1);
}

TEST(Traps, AMeasurementThatARetryNoLongerGivesIsAnError) {
  const Story story =
      Story().ends(0).measures(0, {7e14}).ends(0, CaseEnd::State::kOk, "", 2).expects(atLeast(6.5e14));
  expectError(story, "no measurement in attempt 2");
}

/// Each attempt names what it found: a failure that the next one does not find is flaky, and only where that
/// one looked at the same.
TEST(Traps, WhatARetryDoesNotFindAgainIsFlakyIfItLooked) {
  const auto finds = [](Story& story, int attempt, const std::string& culprit, double count, int rank = 0) {
    Measurement m;
    m.metric = "compute.wrong";
    m.unit = "count";
    m.direction = Direction::kLower;
    m.samples = {count};
    m.labels = {{"culprit", culprit}};
    story.measures(rank, std::move(m), attempt, "gemm");
  };
  const auto begun = [&](bool declared) {
    Story story;
    if (declared) story.evidence.findingLabels["compute.wrong"] = {"culprit"};
    story.expects(expectingOf("compute.wrong", "count", CheckKind::kMax, 0));
    story.ends(0).ends(0, CaseEnd::State::kOk, "", 2);
    return story;
  };
  Story found = begun(true);
  finds(found, 1, "link a - b", 1);
  finds(found, 2, "none", 0);
  EXPECT_EQ(found.outcomes(), "flaky pass");
  EXPECT_THAT(found.judge().verdicts[0].detail,
              HasSubstr("not found in attempt 2; attempt 1 had ended in fail"));
  EXPECT_EQ(exitCode(found), 1);

  Story later = begun(true);
  finds(later, 1, "none", 0);
  finds(later, 2, "link a - b", 1);
  EXPECT_EQ(later.outcomes(), "pass fail");

  Story undeclared = begun(false);
  finds(undeclared, 1, "link a - b", 1);
  finds(undeclared, 2, "none", 0);
  EXPECT_EQ(undeclared.outcomes(), "error pass");

  Story silent = begun(true);
  finds(silent, 1, "link a - b", 1);
  EXPECT_EQ(silent.outcomes(), "error");
  silent.ends(1).ends(1, CaseEnd::State::kOk, "", 2);
  finds(silent, 2, "none", 0, 1);
  EXPECT_EQ(silent.outcomes(), "error pass") << "another rank looked at something else";
}

TEST(Traps, MeasurementsOfNobodyAreErrors) {
  const Story story = healthy().measures(5, {7e14}).expects(atLeast(6.5e14));
  EXPECT_EQ(story.outcomes(), "pass error");
  EXPECT_EQ(exitCode(story), 3);
}

TEST(Traps, AnAttemptThatNeverEndedIsAnError) {
  const Story story = healthy().measures(0, {7e14}, kThroughput, 2).expects(atLeast(6.5e14));
  EXPECT_EQ(story.outcomes(), "error pass");
  EXPECT_THAT(story.judge().verdicts[0].detail, HasSubstr("has measurements but did not end"));
}

TEST(Traps, ANodeComparedWithItselfIsNotAPeer) {
  // Two devices by inventory, one of them measured: its own figure is no reference.
  const Story story = healthy().ends(1, CaseEnd::State::kError, "hang").expects(within(0.03));
  EXPECT_EQ(story.outcomes(), "error error");
  EXPECT_THAT(story.judge().verdicts[1].detail, HasSubstr("no peer in the node was measured"));
}

TEST(Traps, AnExpectationOnALabelThatNothingCarriesIsAnError) {
  Expectation e = atLeast(6.5e14);
  e.where = {{"dtype", "fp8"}};
  const Story story = healthy().expects(e);
  EXPECT_EQ(story.outcomes(), "error unjudged");
  EXPECT_THAT(story.judge().verdicts[0].detail,
              HasSubstr("(dtype=fp8): no measurement for compute.gemm_throughput"));
}

/// Whatever the cases of a stage came to, on whatever ranks, in whatever attempts: once its group names a
/// faulty component, an error blocks acceptance; and errors that come from elsewhere speak of no device.
TEST(Traps, AStageWithAFaultyComponentNeverPasses) {
  std::mt19937 random(9);
  const auto oneOf = [&](const auto& list) { return list[random() % std::size(list)]; };
  constexpr CaseEnd::State kStates[] = {CaseEnd::State::kOk, CaseEnd::State::kOk, CaseEnd::State::kError,
                                        CaseEnd::State::kUnsupported};
  constexpr CaseEnd::Cause kCauses[] = {CaseEnd::Cause::kOwn, CaseEnd::Cause::kGroup,
                                        CaseEnd::Cause::kCancelled};
  int blamed = 0;
  for (int trial = 0; trial < 5000; ++trial) {
    Story story;
    story.evidence.allowFlaky = true;
    story.expects(atLeast(6e14));
    const int ranks = 1 + static_cast<int>(random() % 3), attempts = 1 + static_cast<int>(random() % 2);
    std::set<std::string> own;
    bool follows = false;
    for (int rank = 0; rank < ranks; ++rank)
      for (int attempt = 1; attempt <= attempts; ++attempt) {
        const CaseEnd::State state = oneOf(kStates);
        const bool broke = state == CaseEnd::State::kError;
        story.ends(rank, state,
                   broke                          ? "it broke"
                   : state == CaseEnd::State::kOk ? ""
                                                  : "it lacks that",
                   attempt);
        CaseEnd& end = story.evidence.ends.back();
        end.cause = state == CaseEnd::State::kError ? oneOf(kCauses) : CaseEnd::Cause::kOwn;
        if (state == CaseEnd::State::kOk)
          story.measures(rank, {random() % 5 == 0 ? 1e14 : 7e14}, kThroughput, attempt);
        if (attempt < attempts || state != CaseEnd::State::kError) continue;
        follows = follows || end.cause != CaseEnd::Cause::kOwn;
        if (end.cause == CaseEnd::Cause::kOwn) own.insert(end.device);
      }
    const auto before = story.judge();
    for (const Verdict& v : before.verdicts)
      if (v.outcome == Outcome::kError && v.metric.empty() && !v.device.empty() &&
          v.detail.ends_with("it broke")) {
        EXPECT_EQ(own.count(v.device), 1U) << trial << ": " << v.detail;
      }
    if (follows) {
      EXPECT_GT(before.accounting.of(Outcome::kError), 0U) << trial;
    }
    story.evidence.faulty = "node 1 (n1) was lost";
    const auto after = story.judge();
    EXPECT_GT(after.accounting.of(Outcome::kError), 0U) << trial;
    EXPECT_GE(after.accounting.of(Outcome::kError), before.accounting.of(Outcome::kError)) << trial;
    EXPECT_NE(exitCode(story), 0) << trial;
    blamed += before.accounting.of(Outcome::kError) == 0 ? 1 : 0;
  }
  EXPECT_GT(blamed, 100);
}

TEST(Traps, ErrorsThatAnotherRankCausedAreOneAndBlameNoDevice) {
  Story story;
  story.ends(0, CaseEnd::State::kError, "node 1 (n1) was lost")
      .ends(1, CaseEnd::State::kError, "node 1 (n1) was lost");
  for (CaseEnd& end : story.evidence.ends) end.cause = CaseEnd::Cause::kGroup;
  const Verdict verdict = story.verdict();
  EXPECT_EQ(verdict.outcome, Outcome::kError);
  EXPECT_EQ(verdict.device, "");
  EXPECT_EQ(verdict.rank, -1);
  EXPECT_EQ(verdict.caseId, "gemm");
  EXPECT_EQ(verdict.detail, "node 1 (n1) was lost");
  // The rank that it was says so itself; the others have nothing to add.
  story.ends(2, CaseEnd::State::kError, "was killed by SIGKILL");
  EXPECT_EQ(story.verdict().device, "gpu2");
  // The same once all ended well in another attempt: what is flaky is the rank that failed.
  for (const int rank : {0, 1, 2})
    story.ends(rank, CaseEnd::State::kOk, "", 2).measures(rank, {7e14}, kThroughput, 2);
  int flaky = 0;
  for (const Verdict& v : story.judge().verdicts)
    if (v.outcome == Outcome::kFlaky) {
      ++flaky;
      EXPECT_EQ(v.device, "gpu2") << v.detail;
    }
  EXPECT_EQ(flaky, 1);
}

}  // namespace
}  // namespace muster
