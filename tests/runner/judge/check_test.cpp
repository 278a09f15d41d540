// SPDX-License-Identifier: Apache-2.0
// Every kind of expectation: what meets it, what misses it, and what cannot be judged by it.
#include "runner/judge/check.h"

#include <gmock/gmock.h>

#include <cmath>

#include "runner/judge/bound.h"
#include "tests/runner/judge/evidence.h"

namespace muster {
namespace {
using namespace testing;
using ::testing::HasSubstr;

Verdict judged(const Expectation& e, std::vector<double> samples) {
  return Story().ends(0).measures(0, std::move(samples), e.metric).expects(e).verdict();
}

const char* outcomeOf(const Expectation& e, std::vector<double> samples) {
  return outcomeName(judged(e, std::move(samples)).outcome);
}

TEST(CheckMin, IsMetAtTheLimitItself) {
  EXPECT_STREQ(outcomeOf(atLeast(100), {100}), "pass");
  EXPECT_STREQ(outcomeOf(atLeast(100), {99.999999}), "fail");
}

TEST(CheckMax, IsMetAtTheLimitItself) {
  const Expectation e = expectingOf("env.temperature", "degC", CheckKind::kMax, 85);
  EXPECT_STREQ(outcomeOf(e, {85}), "pass");
  const Verdict v = judged(e, {90});
  EXPECT_EQ(v.outcome, Outcome::kFail);
  EXPECT_EQ(v.detail, "gpu0: 90 °C, required at most 85 °C (5.9% above)");
  EXPECT_NEAR(v.margin, -5.0 / 85, 1e-12);
  EXPECT_STREQ(outcomeOf(e, {-40}), "pass") << "a negative temperature is no fault";
}

TEST(CheckMax, ZeroIsALimitForErrorCounts) {
  const Expectation e = expectingOf("compute.wrong", "count", CheckKind::kMax, 0);
  EXPECT_STREQ(outcomeOf(e, {0, 0}), "pass");
  const Verdict v = judged(e, {5});
  EXPECT_EQ(v.outcome, Outcome::kFail);
  EXPECT_EQ(v.detail, "gpu0: 5, required at most 0");
  EXPECT_TRUE(std::isnan(v.margin));
}

TEST(CheckMax, OfYesAndNoSaysWhichIsRequired) {
  Group group;
  group.unit = "bool";
  const auto text = [&](CheckKind kind, double limit) {
    return boundOf(expectingOf("env.row_remap_pending", "bool", kind, limit), group, {}, {})->text;
  };
  EXPECT_EQ(text(CheckKind::kMax, 0), "false");
  EXPECT_EQ(text(CheckKind::kMin, 1), "true");
  group.unit = "count";
  EXPECT_EQ(text(CheckKind::kMax, 0), "at most 0");
}

TEST(CheckMax, OneBadRepeatOfACountIsNotHiddenByTheMedian) {
  EXPECT_STREQ(outcomeOf(expectingOf("compute.wrong", "count", CheckKind::kMax, 0), {0, 0, 0, 7, 0}), "fail");
  EXPECT_STREQ(outcomeOf(expectingOf("compute.wrong", "count", CheckKind::kMin, 8), {8, 8, 7, 8}), "fail");
}

TEST(Statistic, IsTheOneThatIsNamed) {
  Expectation e = atLeast(100);
  const std::vector<double> samples = {50, 100, 120, 300};
  for (const auto& [statistic, observed] :
       {std::pair{"median", 110.0}, {"mean", 142.5}, {"min", 50.0}, {"max", 300.0}}) {
    e.statistic = statistic;
    EXPECT_DOUBLE_EQ(judged(e, samples).observed, observed) << statistic;
  }
}

TEST(CheckEquals, HoldsForEverySample) {
  const Expectation e = expectingOf("compute.wrong", "count", CheckKind::kEquals, 8);
  EXPECT_STREQ(outcomeOf(e, {8, 8, 8}), "pass");
  const Verdict v = judged(e, {8, 8, 7});
  EXPECT_EQ(v.outcome, Outcome::kFail);
  EXPECT_EQ(v.detail, "gpu0: 7, required 8");
  EXPECT_DOUBLE_EQ(v.observed, 7);
}

TEST(CheckEquals, HoldsForEveryText) {
  const Expectation e = onText(CheckKind::kEquals, {"550.1"});
  EXPECT_EQ(Story().ends(0).says(0, "550.1").expects(e).verdict().outcome, Outcome::kPass);
  const Verdict v = Story().ends(0).says(0, "550.1").says(0, "535.0").expects(e).verdict();
  EXPECT_EQ(v.outcome, Outcome::kFail);
  EXPECT_EQ(v.detail, "gpu0: \"535.0\", required \"550.1\"");
}

TEST(CheckOneOf, KnowsTextsAndNumbers) {
  const Expectation texts = onText(CheckKind::kOneOf, {"a", "b"});
  EXPECT_EQ(Story().ends(0).says(0, "b").expects(texts).verdict().outcome, Outcome::kPass);
  EXPECT_EQ(Story().ends(0).says(0, "").expects(texts).verdict().outcome, Outcome::kFail);
  Expectation numbers = expectingOf("compute.wrong", "count", CheckKind::kOneOf);
  numbers.allowed = {"4", "8"};
  EXPECT_STREQ(outcomeOf(numbers, {8, 4}), "pass");
  EXPECT_EQ(judged(numbers, {6}).detail, "gpu0: 6, required one of 4, 8");
  numbers.allowed = {"many"};
  EXPECT_STREQ(outcomeOf(numbers, {6}), "error");
}

TEST(CheckContains, LooksForWholeWordsInEveryText) {
  const auto outcome = [](CheckKind kind, std::vector<std::string> words, const std::string& text) {
    return Story().ends(0).says(0, text).expects(onText(kind, std::move(words))).verdict().outcome;
  };
  EXPECT_EQ(outcome(CheckKind::kContains, {"ib"}, "nvlink,ib+gdr"), Outcome::kPass);
  EXPECT_EQ(outcome(CheckKind::kContains, {"ib", "gdr"}, "nvlink,ib+gdr"), Outcome::kPass);
  EXPECT_EQ(outcome(CheckKind::kContains, {"ib"}, "libfabric"), Outcome::kFail);
  EXPECT_EQ(outcome(CheckKind::kContains, {"nvlink"}, "mnnvlink"), Outcome::kFail);
  EXPECT_EQ(outcome(CheckKind::kContains, {"ib", "nvlink"}, "ib"), Outcome::kFail);
  EXPECT_EQ(outcome(CheckKind::kContains, {"2.2"}, "NCCL 2.29"), Outcome::kFail);
  EXPECT_EQ(outcome(CheckKind::kContains, {"+gdr"}, "ib+gdr"), Outcome::kPass) << "it begins with no letter";
  EXPECT_EQ(outcome(CheckKind::kContains, {"a"}, ""), Outcome::kFail);
  EXPECT_EQ(outcome(CheckKind::kExcludes, {"socket"}, "nvlink,socket"), Outcome::kFail);
  EXPECT_EQ(outcome(CheckKind::kExcludes, {"socket", "shm"}, "nvlink"), Outcome::kPass);
  EXPECT_EQ(outcome(CheckKind::kExcludes, {}, "nvlink"), Outcome::kError) << "it could never fail";
  const Verdict v =
      Story().ends(0).says(0, "ib").expects(onText(CheckKind::kContains, {"ib", "gdr"})).verdict();
  EXPECT_EQ(v.detail, "gpu0: \"ib\", required a text with \"ib\", \"gdr\"; missing: \"gdr\"");
  const Expectation number = onText(CheckKind::kContains, {"4"});
  EXPECT_EQ(Story().ends(0).measures(0, {4}, number.metric).expects(number).verdict().outcome,
            Outcome::kError);
}

TEST(CheckBaseline, IsOneSidedByTheDirection) {
  Expectation e = expecting(CheckKind::kBaseline, 100);
  e.tolerance = 0.03;
  EXPECT_STREQ(outcomeOf(e, {97}), "pass") << "100 x 0.97 must not be missed by rounding";
  EXPECT_STREQ(outcomeOf(e, {96.9}), "fail");
  EXPECT_STREQ(outcomeOf(e, {500}), "pass") << "better is never worse";
  Expectation lower = expectingOf("env.temperature", "degC", CheckKind::kBaseline, 100);
  lower.tolerance = 0.03;
  EXPECT_STREQ(outcomeOf(lower, {103}), "pass");
  EXPECT_STREQ(outcomeOf(lower, {103.1}), "fail");
  EXPECT_STREQ(outcomeOf(lower, {1}), "pass");
  EXPECT_EQ(judged(e, {50}).detail,
            "gpu0: 50 FLOP/s, required at least 97 FLOP/s (within 3% of the baseline 100 FLOP/s) "
            "(48% below)");
}

TEST(CheckBaseline, IsTwoSidedWithoutADirection) {
  Expectation e = expecting(CheckKind::kBaseline, 100);
  e.tolerance = 0.1;
  const auto outcome = [&](double sample) {
    Story story;
    story.ends(0).measures(0, {sample}).expects(e);
    story.evidence.measurements[0].direction = Direction::kNone;
    return std::string(outcomeName(story.verdict().outcome));
  };
  EXPECT_EQ(outcome(90), "pass");
  EXPECT_EQ(outcome(110), "pass");
  EXPECT_EQ(outcome(89), "fail");
  EXPECT_EQ(outcome(111), "fail");
}

TEST(CheckOfPeak, TakesTheContextsPeak) {
  Story story;
  story.ends(0).measures(0, {7e14}).expects(expecting(CheckKind::kOfPeak, 0.7));
  story.evidence.measurements[0].peak = "flops.bf16";
  story.context.peaks = {{"flops.bf16", 9.89e14}};
  story.context.peaksFrom = "profile h100-sxm5-80gb";
  EXPECT_EQ(story.verdict().outcome, Outcome::kPass);
  EXPECT_EQ(story.verdict().limitText, "at least 692.3 TFLOP/s (70% of the peak 989 TFLOP/s)");
  story.context.peaks["flops.bf16"] = 2e15;
  EXPECT_EQ(story.verdict().outcome, Outcome::kFail);
}

TEST(CheckOfPeak, WithoutAPeakIsAnErrorThatSaysSo) {
  Story story;
  story.ends(0).measures(0, {7e14}).expects(expecting(CheckKind::kOfPeak, 0.7));
  EXPECT_THAT(story.verdict().detail, HasSubstr("the metric has no theoretical peak"));
  story.evidence.measurements[0].peak = "flops.bf16";
  story.context.peaksFrom = "profile x";
  EXPECT_EQ(story.verdict().outcome, Outcome::kError);
  EXPECT_THAT(story.verdict().detail, HasSubstr("no peak \"flops.bf16\" is known from profile x"));
  for (const double bad : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    story.context.peaks["flops.bf16"] = bad;
    EXPECT_EQ(story.verdict().outcome, Outcome::kError) << bad;
  }
}

TEST(CheckCv, JudgesTheSpreadOverAllSamples) {
  Expectation e = expecting(CheckKind::kCvMax, 0.05);
  EXPECT_STREQ(outcomeOf(e, {100, 101, 99}), "pass");
  const Verdict v = judged(e, {100, 200});
  EXPECT_EQ(v.outcome, Outcome::kFail);
  EXPECT_EQ(v.observedText, "47.14%");
  EXPECT_THAT(v.limitText, HasSubstr("a coefficient of variation of at most 5%"));
}

TEST(CheckCv, OneSampleOrAllZeroProvesNoStability) {
  EXPECT_THAT(judged(expecting(CheckKind::kCvMax, 0.05), {100}).detail, HasSubstr("at least two samples"));
  EXPECT_STREQ(outcomeOf(expecting(CheckKind::kCvMax, 0.05), {0, 0, 0}), "error");
}

TEST(CheckPredicate, HoldsForEveryRepeat) {
  Expectation e = expecting(CheckKind::kPredicate);
  e.predicate = "return true";
  Story story;
  story.ends(0).measures(0, {1}).measures(0, {2}).expects(e);
  EXPECT_THAT(story.verdict().detail, HasSubstr("was not evaluated"));
  story.context.predicateAnswers["return true"] = {{true, ""}};
  EXPECT_THAT(story.verdict().detail, HasSubstr("gave no answer"));
  story.context.predicateAnswers["return true"] = {{true, ""}, {true, ""}};
  EXPECT_EQ(story.verdict().outcome, Outcome::kPass);
  story.context.predicateAnswers["return true"] = {{true, ""}, {false, "drifts"}};
  EXPECT_EQ(story.verdict().outcome, Outcome::kFail);
  EXPECT_EQ(story.verdict().detail,
            "gpu0: 1.5 FLOP/s, required a value accepted by the plan's predicate: drifts");
  story.context.predicateErrors["return true"][1] = "attempt to index nil";
  EXPECT_EQ(story.verdict().outcome, Outcome::kError);
  EXPECT_THAT(story.verdict().detail, HasSubstr("the plan's predicate failed: attempt to index nil"));
}

TEST(WarnBand, NeedsADistanceToTheLimit) {
  Expectation e = expecting(CheckKind::kMax, 100);
  e.warnBand = 0.05;
  EXPECT_STREQ(outcomeOf(e, {96}), "warn");
  EXPECT_STREQ(outcomeOf(e, {94}), "pass");
  EXPECT_STREQ(outcomeOf(e, {101}), "fail");
}

TEST(Severity, AWarnMissOfEachKindIsAWarning) {
  Expectation e = onText(CheckKind::kEquals, {"a"});
  e.severity = Severity::kWarn;
  EXPECT_EQ(Story().ends(0).says(0, "b").expects(e).verdict().outcome, Outcome::kWarn);
  Expectation error = atLeast(0);
  error.severity = Severity::kWarn;
  EXPECT_STREQ(outcomeOf(error, {1}), "error") << "what cannot be judged is never a mere warning";
}

}  // namespace
}  // namespace muster
