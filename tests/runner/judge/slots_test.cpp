// SPDX-License-Identifier: Apache-2.0
// What is to be judged: which cases an expectation asks, and what it asks of each.
#include "runner/judge/slots.h"

#include <gmock/gmock.h>

#include <ctime>
#include <tuple>

#include "tests/runner/judge/evidence.h"

namespace muster {
namespace {
using namespace testing;
using ::testing::HasSubstr;

Story twoDtypes() {
  Story story;
  story.evidence.caseMetrics.clear();
  story.declare("bf16", {{"dtype", "bf16"}}).declare("f32", {{"dtype", "f32"}});
  story.ends(0, CaseEnd::State::kOk, "", 1, "bf16").ends(0, CaseEnd::State::kOk, "", 1, "f32");
  return story;
}

Expectation onDtype(const std::string& dtype, const std::string& origin = "plan") {
  Expectation e = atLeast(6.5e14);
  e.where = {{"dtype", dtype}};
  e.origin = origin;
  return e;
}

TEST(Slots, AnExpectationAsksOnlyTheCasesThatCanCarryItsLabels) {
  const Story story = twoDtypes().expects(onDtype("bf16"));
  const auto judgement = story.judge();
  ASSERT_EQ(story.outcomes(), "error error");
  EXPECT_EQ(judgement.verdicts[0].caseId, "bf16");
  EXPECT_EQ(judgement.verdicts[0].detail, "gpu0 (dtype=bf16): no measurement for compute.gemm_throughput");
  EXPECT_EQ(judgement.verdicts[1].detail, "gpu0: passed without a measurement") << "the other case";
}

/// The group of 16 ranks on 2 nodes of a sweep whose smaller one has 8.
Story ofSweep() {
  Story story;
  story.declare("gemm", {{"ranks", "16"}, {"nodes", "2"}});
  story.evidence.caseLabels["beside"] = {};  // as telemetry has
  story.evidence.sweep = true;
  story.evidence.groupRanks = {8, 16};
  Measurement m;
  m.metric = kThroughput;
  m.unit = "FLOP/s";
  m.direction = Direction::kHigher;
  m.labels = {{"ranks", "16"}, {"nodes", "2"}};
  m.samples = {7e14};
  m.informational = true;
  return story.ends(0).measures(0, m, 1, "gemm");
}

Expectation onLabel(const char* label, const char* value) {
  Expectation e = atLeast(6.5e14);
  e.where = {{label, value}};
  return e;
}

TEST(Slots, WhatIsExpectedOfOtherGroupsOfASweepIsTheirs) {
  EXPECT_EQ(ofSweep().expects(onLabel("ranks", "16")).outcomes(), "pass");
  EXPECT_EQ(ofSweep().expects(onLabel("nodes", "2")).outcomes(), "pass");
  for (const auto& [label, value] :
       {std::pair{"ranks", "8"}, {"ranks", "32"}, {"nodes", "1"}, {"nodes", "4"}}) {
    EXPECT_EQ(ofSweep().expects(onLabel(label, value)).expects(atLeast(6e14)).outcomes(), "pass") << value;
    EXPECT_EQ(ofSweep().expects(onLabel(label, value)).outcomes(), "unjudged")
        << "limits on other groups do not make this one informational";
    Story alone = ofSweep();
    alone.evidence.sweep = false;
    EXPECT_EQ(alone.expects(onLabel(label, value)).outcomes(), "error") << "without a sweep it is missing";
  }
  const Story typo = ofSweep().expects(onLabel("ranks", "12"));
  EXPECT_EQ(typo.outcomes(), "error") << "a size between those that the sweep has";
  Story uneven = ofSweep().expects(onLabel("ranks", "12"));
  uneven.evidence.groupRanks.clear();
  EXPECT_EQ(uneven.outcomes(), "unjudged");
}

TEST(Slots, VerdictsThatWouldTakeAllMemoryAreOneError) {
  Story story;
  for (int rank = 0; rank < 50; ++rank) story.ends(rank).measures(rank, {7e14});
  Expectation e = atLeast(6.5e14);
  e.remedy.assign(4096, 'A');
  for (int i = 0; i < 40; ++i) story.expects(e);
  EXPECT_EQ(story.judge().verdicts.size(), 2000);
  for (int i = 0; i < 960; ++i) story.expects(e);
  const auto judgement = story.judge();
  ASSERT_EQ(judgement.verdicts.size(), 1);
  EXPECT_TRUE(judgement.accounting.balanced());
  EXPECT_EQ(judgement.verdicts[0].outcome, Outcome::kError);
  EXPECT_THAT(judgement.verdicts[0].detail, HasSubstr("1000 expectations on 50 measurements"));
}

/// Comparing each rank with all others would take many minutes here.
TEST(Slots, ManyRanksThatMeasuredOtherwiseAreAskedNothing) {
  constexpr int kRanks = 60'000, kExpectations = 8;
  Story story;
  Measurement m;
  m.metric = kThroughput;
  m.unit = "FLOP/s";
  m.direction = Direction::kHigher;
  m.labels["dtype"] = "bf16";
  m.samples = {7e14};
  for (int rank = 0; rank < kRanks; ++rank) story.ends(rank).measures(rank, m, 1, "gemm");
  for (int i = 0; i < kExpectations; ++i)
    story.expects(onDtype("other" + std::to_string(i), "profile large"));
  const auto judgement = story.judge();
  EXPECT_EQ(judgement.accounting.of(Outcome::kUnjudged), static_cast<size_t>(kRanks));
  EXPECT_EQ(judgement.verdicts.size(), static_cast<size_t>(kRanks));
  story.evidence.measurements.back().labels["dtype"] = "other0";
  const auto missing = story.judge();
  EXPECT_EQ(missing.accounting.of(Outcome::kError), static_cast<size_t>(kRanks - 1))
      << "what one rank measured is missing on the others";
}

Measurement throughput(std::vector<double> samples) {
  Measurement m;
  m.metric = kThroughput;
  m.unit = "FLOP/s";
  m.direction = Direction::kHigher;
  m.series = Series::kRuns;
  m.samples = std::move(samples);
  m.informational = true;
  return m;
}

/// A small record can hold many of two things each; one of them for each of the other takes minutes.
TEST(Slots, ManyPartsOfTwoKindsAreNotHeldAgainstEachOther) {
  const auto limits = [](Story& story, size_t n, Expectation e) {
    for (size_t i = 0; i < n; ++i) story.expects(e);
  };
  Expectation builtIn = atLeast(6.5e14);
  builtIn.origin = "standing";

  Story labels;  // of a case, which none of the expectations matches
  for (int i = 0; i < 10'000; ++i) labels.evidence.caseLabels["gemm"]["l" + std::to_string(i)] = "v";
  for (int rank = 0; rank < 1000; ++rank) labels.ends(rank);
  builtIn.where = {{"l0", "other"}};
  limits(labels, 900, builtIn);
  builtIn.where.clear();

  Story samples;
  samples.ends(0).measures(0, throughput(std::vector<double>(2'000'000, 7e14)), 1, "gemm");
  Story values = samples, drops = samples;
  limits(samples, 900, builtIn);
  values.evidence.measurements[0].series = Series::kNone;
  builtIn.kind = CheckKind::kOneOf;
  for (int i = 1; i < 1000; ++i) builtIn.allowed.push_back(std::to_string(i) + " FLOP/s");
  builtIn.allowed.emplace_back("700 TFLOP/s");
  limits(values, 20, builtIn);
  builtIn.allowed.clear();
  builtIn.kind = CheckKind::kDropMax;
  builtIn.limit = 0.1;
  limits(drops, 300, builtIn);

  Story few;  // samples to see a drop
  for (int rank = 0; rank < 20'000; ++rank) few.ends(rank).measures(rank, throughput({7e14}), 1, "gemm");
  limits(few, 300, builtIn);

  Story texts;
  texts.ends(0);
  for (int i = 0; i < 100'000; ++i) texts.says(0, "last");
  Expectation word = onText(CheckKind::kOneOf, {});
  for (int i = 0; i < 1000; ++i) word.allowed.push_back(std::to_string(i));
  word.allowed.emplace_back("last");
  limits(texts, 500, word);

  const std::vector<std::tuple<const char*, const Story*, Outcome, size_t>> cases = {
      {"labels", &labels, Outcome::kError, 1000}, {"samples", &samples, Outcome::kPass, 900},
      {"values", &values, Outcome::kPass, 20},    {"drops", &drops, Outcome::kPass, 300},
      {"few", &few, Outcome::kUnjudged, 0},       {"texts", &texts, Outcome::kPass, 500}};
  for (const auto& [name, story, outcome, count] : cases) {
    const std::clock_t before = std::clock();
    EXPECT_EQ(story->judge().accounting.of(outcome), count) << name;
    EXPECT_LT((std::clock() - before) / CLOCKS_PER_SEC, 5) << name;
  }
}

/// An error that many cases have in common is told once for each.
TEST(Slots, ManyCasesWithErrorsFromElsewhereAreOneErrorEach) {
  constexpr int kCases = 60'000;
  Story story;
  for (int i = 0; i < kCases; ++i)
    for (const int rank : {0, 1}) {
      story.ends(rank, CaseEnd::State::kError, "lost its peer", 1, "case" + std::to_string(i));
      if (rank == 1) story.evidence.ends.back().cause = CaseEnd::Cause::kGroup;
    }
  story.evidence.caseMetrics.clear();
  EXPECT_EQ(story.judge().verdicts.size(), static_cast<size_t>(kCases));
}

TEST(Slots, AMetricOfTheLeaderIsAskedOfRankZeroAlone) {
  Story story =
      Story().ends(0).measures(0, {7e14}).ends(1).measures(1, {1}, "compute.copy").expects(atLeast(6.5e14));
  EXPECT_EQ(story.outcomes(), "pass error unjudged");
  story.evidence.leaderMetrics = {kThroughput};
  EXPECT_EQ(story.outcomes(), "pass unjudged");
  Story silent = Story().ends(0).ends(1).measures(1, {1}, "compute.copy").expects(atLeast(6.5e14));
  silent.evidence.leaderMetrics = {kThroughput};
  EXPECT_EQ(silent.outcomes(), "error unjudged") << "rank 0 still owes it";
}

/// A sweep over sizes that ended at `largest`, as measured on `rank`.
Story sweepTo(const std::string& largest, int rank = 0) {
  Story story;
  story.declare("gemm", {{"op", "all_reduce"}, {"numa", "near,far"}}).ends(rank).measures(rank, {4e11});
  story.evidence.measurements.back().labels["op"] = "all_reduce";
  story.evidence.measurements.back().labels["bytes"] = largest;
  return story;
}

Expectation at(const Labels& where, const std::string& origin) {
  Expectation e = atLeast(4.6e11);
  e.where = where;
  e.origin = origin;
  return e;
}

TEST(Slots, AProfilesLimitAppliesWhereItsLabelsOccur) {
  const Labels where = {{"op", "all_reduce"}, {"bytes", "8 GiB"}};
  EXPECT_EQ(sweepTo("8 GiB").expects(at(where, "profile h100")).outcomes(), "fail");
  EXPECT_EQ(sweepTo("4 GiB").expects(at(where, "profile h100")).outcomes(), "unjudged");
  EXPECT_EQ(sweepTo("4 GiB").expects(at(where, "plan")).outcomes(), "error unjudged")
      << "what the plan asks for must be there";
}

TEST(Slots, AProfilesLimitIsStillOwedWhereItsLabelsAreBoundToOccur) {
  const Labels where = {{"op", "all_reduce"}, {"bytes", "8 GiB"}};
  Story none = Story().ends(0).measures(0, {1}, "compute.copy").expects(at(where, "profile h100"));
  EXPECT_EQ(none.outcomes(), "error unjudged") << "the metric is wholly missing";
  EXPECT_EQ(sweepTo("4 GiB").expects(at({{"numa", "near"}}, "profile h100")).outcomes(), "error unjudged")
      << "the parameter `numa` says that it was to be measured";
  EXPECT_EQ(sweepTo("4 GiB").expects(at({{"numb", "near"}}, "profile h100")).outcomes(), "error unjudged")
      << "no other value of that label was measured either";
  Story uneven = sweepTo("8 GiB");
  const Story other = sweepTo("4 GiB", 1);
  uneven.evidence.ends.push_back(other.evidence.ends.front());
  uneven.evidence.measurements.push_back(other.evidence.measurements.front());
  EXPECT_EQ(uneven.expects(at(where, "profile h100")).outcomes(), "fail error unjudged")
      << "it occurred on another rank of the same case";
}

TEST(Slots, LabelsThatNoCaseCanCarryAreAnErrorOfThePlanOnly) {
  EXPECT_EQ(twoDtypes().expects(onDtype("fp8")).outcomes(), "error error error");
  EXPECT_EQ(twoDtypes().expects(onDtype("fp8", "profile h100")).outcomes(), "error error");
  EXPECT_THAT(twoDtypes().expects(onDtype("fp8")).judge().verdicts[0].detail,
              HasSubstr("no case of this stage can carry these labels"));
}

TEST(Slots, AMetricThatNoCaseReportsIsAnErrorOfThePlanOnly) {
  Expectation e = expectingOf("other.metric", "count", CheckKind::kMax, 0);
  const Story base = Story().ends(0).measures(0, {7e14}).expects(atLeast(6.5e14));
  EXPECT_EQ(Story(base).expects(e).outcomes(), "pass error");
  EXPECT_THAT(Story(base).expects(e).judge().verdicts[1].detail,
              HasSubstr("no case of this stage reports other.metric"));
  e.origin = "profile h100";
  EXPECT_EQ(Story(base).expects(e).outcomes(), "pass");
  e.origin = "standing";
  EXPECT_EQ(Story(base).expects(e).outcomes(), "pass");
}

TEST(Slots, AFaultyExpectationIsOneErrorAndStillCoversItsMeasurements) {
  EXPECT_EQ(Story().ends(0).measures(0, {1}).ends(1).measures(1, {1}).expects(atLeast(0)).outcomes(),
            "error");
}

TEST(Slots, MeasuredLabelsCountMoreThanKnownOnes) {
  // The plugin resolved dtype=auto to bf16 itself.
  Story story;
  story.declare("gemm", {{"dtype", "auto"}}).ends(0).measures(0, {7e14});
  story.evidence.measurements[0].labels["dtype"] = "bf16";
  EXPECT_EQ(story.expects(onDtype("bf16")).outcomes(), "pass");
}

TEST(Slots, AnExpectationOnOneDeviceAsksNoOther) {
  Expectation e = atLeast(6.5e14);
  e.where = {{"device", "gpu1"}};
  EXPECT_EQ(Story().ends(0).measures(0, {7e14}).ends(1).measures(1, {7e14}).expects(e).outcomes(),
            "pass unjudged");
  EXPECT_EQ(Story().ends(0).measures(0, {7e14}).ends(1).expects(e).outcomes(), "error unjudged");
}

TEST(Slots, ACrashedCaseKeepsWhatItMeasured) {
  const Story story =
      Story().ends(0, CaseEnd::State::kError, "crash").measures(0, {1e14}).expects(atLeast(6.5e14));
  EXPECT_EQ(story.outcomes(), "error fail");
}

TEST(Slots, ACaseDeclaredAndNeverStartedIsAnError) {
  const Story story = Story().declare("second").ends(0).measures(0, {7e14}).expects(atLeast(6.5e14));
  EXPECT_EQ(story.outcomes(), "error pass");
  EXPECT_EQ(story.judge().verdicts[0].caseId, "second");
}

TEST(Slots, AnAttemptThatEndedTwiceTakesTheWorse) {
  EXPECT_EQ(Story().ends(0, CaseEnd::State::kError, "x").ends(0).outcomes(), "error");
  EXPECT_EQ(Story().ends(0).ends(0, CaseEnd::State::kError, "x").outcomes(), "error");
}

TEST(Slots, LabelsKeepMeasurementsOfOneMetricApart) {
  Story story;
  story.ends(0);
  for (const std::string op : {"copy", "triad"}) {
    Measurement m;
    m.metric = "compute.copy";
    m.unit = "B/s";
    m.direction = Direction::kHigher;
    m.labels = {{"op", op}};
    m.samples = {op == "copy" ? 4e12 : 1e12};
    story.measures(0, m, 1, "gemm");
  }
  const auto judgement = story.expects(expectingOf("compute.copy", "B/s", CheckKind::kMin, 2e12)).judge();
  EXPECT_EQ(story.outcomes(), "pass fail");
  EXPECT_EQ(judgement.verdicts[1].labels.at("op"), "triad");
}

TEST(CanCarry, ComparesKnownLabelsAndLooksIntoLists) {
  const Labels known = {{"dtype", "bf16"}, {"ops", "copy,triad"}};
  EXPECT_TRUE(canCarry(known, {}));
  EXPECT_TRUE(canCarry(known, {{"dtype", "bf16"}, {"op", "triad"}}));
  EXPECT_FALSE(canCarry(known, {{"dtype", "f32"}}));
  EXPECT_FALSE(canCarry(known, {{"op", "read"}}));
  EXPECT_TRUE(canCarry(known, {{"ops", "triad"}})) << "a list parameter that is called as its label";
  EXPECT_TRUE(canCarry(known, {{"unknown", "x"}})) << "it may turn up: its absence is then an error";
}

}  // namespace
}  // namespace muster
