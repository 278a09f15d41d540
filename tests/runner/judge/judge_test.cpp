// SPDX-License-Identifier: Apache-2.0
// Every row of the outcome table, and what a verdict tells.
#include "runner/judge/judge.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/runner/judge/evidence.h"

namespace muster {
namespace {
using namespace testing;
using ::testing::HasSubstr;

TEST(OutcomeTable, PassIsMeasuredAndMet) {
  const Verdict v = Story().ends(0).measures(0, {7.1e14}).expects(atLeast(6.5e14)).verdict();
  EXPECT_EQ(v.outcome, Outcome::kPass);
  EXPECT_EQ(v.detail, "gpu0: 710 TFLOP/s, required at least 650 TFLOP/s (9.2% above)");
  EXPECT_NEAR(v.margin, 0.0923, 1e-4);
}

TEST(OutcomeTable, WarnIsMetInsideTheBand) {
  Expectation e = atLeast(6.5e14);
  e.warnBand = 0.1;
  const Verdict v = Story().ends(0).measures(0, {7.1e14}).expects(e).verdict();
  EXPECT_EQ(v.outcome, Outcome::kWarn);
  EXPECT_THAT(v.detail, HasSubstr("inside the warning band of 10%"));
  e.warnBand = 0.09;
  EXPECT_EQ(Story().ends(0).measures(0, {7.1e14}).expects(e).verdict().outcome, Outcome::kPass);
}

TEST(OutcomeTable, WarnIsAlsoAMissOfWarnSeverity) {
  Expectation e = atLeast(6.5e14);
  e.severity = Severity::kWarn;
  EXPECT_EQ(Story().ends(0).measures(0, {1e14}).expects(e).verdict().outcome, Outcome::kWarn);
}

TEST(OutcomeTable, FailIsMeasuredAndNotMetAndTellsEverything) {
  const Verdict v = Story().ends(3).measures(3, {4.88e14}).expects(atLeast(6.5e14)).verdict();
  EXPECT_EQ(v.outcome, Outcome::kFail);
  EXPECT_EQ(v.detail, "gpu3: 488 TFLOP/s, required at least 650 TFLOP/s (25% below)");
  EXPECT_EQ(v.stage, "gemm");
  EXPECT_EQ(v.caseId, "gemm");
  EXPECT_EQ(v.metric, kThroughput);
  EXPECT_EQ(v.device, "gpu3");
  EXPECT_EQ(v.rank, 3);
  EXPECT_EQ(v.labels.at("device"), "gpu3");
  EXPECT_EQ(v.observedText, "488 TFLOP/s");
  EXPECT_EQ(v.limitText, "at least 650 TFLOP/s");
  EXPECT_DOUBLE_EQ(v.observed, 4.88e14);
  EXPECT_DOUBLE_EQ(v.limit, 6.5e14);
  EXPECT_NEAR(v.margin, -0.249, 1e-3);
  EXPECT_EQ(v.remedy, "Check the clocks");
  EXPECT_EQ(v.expectation->source, "measured on a healthy one");
}

TEST(OutcomeTable, FlakyIsAFailThatPassedOnAnotherAttempt) {
  const Verdict v = Story()
                        .ends(0)
                        .measures(0, {1e14})
                        .ends(0, CaseEnd::State::kOk, "", 2)
                        .measures(0, {7e14}, kThroughput, 2)
                        .expects(atLeast(6.5e14))
                        .verdict();
  EXPECT_EQ(v.outcome, Outcome::kFlaky);
  ASSERT_EQ(v.attempts.size(), 2u);
  EXPECT_EQ(v.attempts[0].outcome, Outcome::kFail);
  EXPECT_DOUBLE_EQ(v.attempts[0].observed, 1e14);
  EXPECT_EQ(v.attempts[1].outcome, Outcome::kPass);
  EXPECT_THAT(v.detail, HasSubstr("attempt 1 had ended in fail"));
}

TEST(OutcomeTable, UnjudgedIsMeasuredAndNotCovered) {
  const Verdict v = Story().ends(0).measures(0, {7.1e14}).verdict();
  EXPECT_EQ(v.outcome, Outcome::kUnjudged);
  EXPECT_FALSE(v.expectation.has_value());
  EXPECT_EQ(v.detail, "gpu0: 710 TFLOP/s; no limit");
  EXPECT_EQ(Story().ends(0).says(0, "550.1").verdict().detail, "gpu0: 550.1; no limit");
}

TEST(OutcomeTable, SkippedIsWhatTheMachineLacks) {
  const Verdict v = Story()
                        .ends(0, CaseEnd::State::kUnsupported, "this CPU has no bf16")
                        .expects(atLeast(6.5e14))
                        .verdict();
  EXPECT_EQ(v.outcome, Outcome::kSkipped);
  EXPECT_TRUE(v.required);
  EXPECT_EQ(v.detail, "gpu0: this CPU has no bf16");
}

TEST(OutcomeTable, SkippedIsAlsoAStageWhoseNeedsDidNotPass) {
  Story story;
  story.evidence.state = StageState::kSkipped;
  story.evidence.reason = "needs env, which failed";
  story.evidence.required = false;
  const Verdict v = story.verdict();
  EXPECT_EQ(v.outcome, Outcome::kSkipped);
  EXPECT_FALSE(v.required);
  EXPECT_EQ(v.detail, "needs env, which failed");
}

TEST(OutcomeTable, SkippedIsAlsoAStageInWhichTheNodeIsIdle) {
  Story story;
  story.evidence.state = StageState::kIdle;
  story.evidence.reason = "its group has the first 2 of 4 nodes";
  story.evidence.required = false;
  EXPECT_EQ(story.verdict().outcome, Outcome::kSkipped);
  DecisionInput input;
  input.accounting = story.judge().accounting;
  EXPECT_EQ(decide(input).acceptance, Acceptance::kIncomplete) << "it accepts no node";
}

TEST(OutcomeTable, ErrorIsWhatCouldNotBeMeasured) {
  const Verdict v =
      Story().ends(2, CaseEnd::State::kError, "rank 2 died of SIGSEGV").expects(atLeast(6.5e14)).verdict();
  EXPECT_EQ(v.outcome, Outcome::kError);
  EXPECT_EQ(v.detail, "gpu2: rank 2 died of SIGSEGV");
  EXPECT_EQ(v.remedy, "mend it");
  EXPECT_TRUE(v.metric.empty());
}

TEST(OutcomeTable, ErrorIsAlsoAStageThatCouldNotStart) {
  Story story;
  story.evidence.state = StageState::kError;
  story.evidence.reason = "no such library";
  EXPECT_EQ(story.verdict().outcome, Outcome::kError);
}

TEST(OutcomeTable, DeferredIsWhatOnlyTheFleetCanSay) {
  Story story;
  story.ends(0).measures(0, {7e14}).expects(within(0.03, PeerGroup::kFleet));
  const Verdict v = story.verdict();
  EXPECT_EQ(v.outcome, Outcome::kDeferred);
  EXPECT_DOUBLE_EQ(v.observed, 7e14);
  EXPECT_TRUE(std::isnan(v.limit));
  EXPECT_EQ(v.detail, "gpu0: 700 TFLOP/s; required within 3% of the fleet median, pending fleet evaluation");
  story.context.peersAreDeferred = false;
  EXPECT_NE(story.verdict().outcome, Outcome::kDeferred) << "a fleet leaves nothing deferred";
}

TEST(OutcomeTable, ElsewhereIsAStageLeftToAnotherJob) {
  Story story;
  story.evidence.state = StageState::kElsewhere;
  story.evidence.reason = "scope cluster runs in another job";
  EXPECT_EQ(story.verdict().outcome, Outcome::kElsewhere);
}

TEST(Judge, RepeatsAreMergedBeforeJudging) {
  // Each repeat's median would give another outcome than that of all samples.
  const Story story = Story()
                          .ends(0)
                          .measures(0, {1e14, 1e14, 9e14})
                          .measures(0, {9e14, 9e14, 9e14})
                          .expects(atLeast(6.5e14));
  EXPECT_EQ(story.verdict().outcome, Outcome::kPass);
  EXPECT_DOUBLE_EQ(story.verdict().observed, 9e14);
}

TEST(Judge, InformationalMeasurementsAreNotCountedUnlessAsked) {
  Story story;
  story.ends(0).measures(0, {7e14});
  story.evidence.measurements[0].informational = true;
  EXPECT_TRUE(story.judge().verdicts.empty());
  EXPECT_EQ(story.expects(atLeast(6.5e14)).verdict().outcome, Outcome::kPass);
}

TEST(Judge, EveryDeviceAndExpectationIsItsOwnVerdict) {
  Story story;
  for (int rank = 0; rank < 4; ++rank) story.ends(rank).measures(rank, {rank == 2 ? 1e14 : 7e14});
  story.expects(atLeast(6.5e14)).expects(expecting(CheckKind::kMax, 8e14));
  EXPECT_EQ(story.outcomes(), "pass pass fail pass pass pass pass pass");
}

TEST(Judge, FiguresThatRoundAlikeAreShownApart) {
  const Verdict v = Story().ends(0).measures(0, {6.4999e14}).expects(atLeast(6.5e14)).verdict();
  EXPECT_EQ(v.outcome, Outcome::kFail);
  EXPECT_EQ(v.observedText, "649.99 TFLOP/s");
}

TEST(Judge, AMatrixKeepsItsCasesApart) {
  Story story;
  story.evidence.caseMetrics.clear();
  story.declare("gemm[dtype=bf16]", {{"dtype", "bf16"}}).declare("gemm[dtype=f32]", {{"dtype", "f32"}});
  for (const std::string dtype : {"bf16", "f32"}) {
    Measurement m;
    m.metric = kThroughput;
    m.unit = "FLOP/s";
    m.direction = Direction::kHigher;
    m.labels = {{"dtype", dtype}};
    m.samples = {dtype == "bf16" ? 7e14 : 5e13};
    const std::string id = "gemm[dtype=" + dtype + "]";
    story.ends(0, CaseEnd::State::kOk, "", 1, id).measures(0, m, 1, id);
  }
  Expectation bf16 = atLeast(6.5e14);
  bf16.where = {{"dtype", "bf16"}};
  EXPECT_EQ(story.expects(bf16).outcomes(), "pass unjudged");
}

}  // namespace
}  // namespace muster
