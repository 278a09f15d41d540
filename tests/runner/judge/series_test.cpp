// SPDX-License-Identifier: Apache-2.0
// Measurements sampled over time: every drop above the stated detection limit is found, and healthy noise is
// not.
#include "runner/judge/series.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/runner/judge/evidence.h"

namespace muster {
namespace {
using namespace testing;
using ::testing::HasSubstr;

constexpr double kLevel = 620e12;
constexpr double kWindow = 5;

/// A generated measurement: noise around a level, and at most one drop.
struct Generated {
  Series series = Series::kWindows;
  size_t windows = 24;
  size_t runs = 400;
  double sigma = 0.005;
  bool skewed = false;  ///< exponential: only ever slower, with a long tail
  double from = 0;      ///< seconds
  double lasts = 0;
  double loss = 0;

  [[nodiscard]] double total() const { return static_cast<double>(windows) * kWindow; }
};

double noise(const Generated& g, std::mt19937_64& random) {
  if (g.skewed) return -std::exponential_distribution<>(1 / g.sigma)(random);
  return std::normal_distribution<>(0, g.sigma)(random);
}

/// Speed at second `at`, without noise.
double speedAt(const Generated& g, double at) {
  return at >= g.from && at < g.from + g.lasts ? 1 - g.loss : 1;
}

/// Windows smear what begins or ends inside them. Runs each do the same work, one after the other.
std::vector<double> samplesOf(const Generated& g, std::mt19937_64& random) {
  std::vector<double> samples;
  if (g.series == Series::kRuns) {
    const double work = g.total() / static_cast<double>(g.runs);
    for (double at = 0; at < g.total();) {
      const double speed = speedAt(g, at) * std::max(0.01, 1 + noise(g, random));
      samples.push_back(kLevel * speed);
      at += work / speed;
    }
    return samples;
  }
  for (size_t i = 0; i < g.windows; ++i) {
    const double begin = static_cast<double>(i) * kWindow;
    const double end = begin + kWindow;
    const double slow = std::max(0.0, std::min(end, g.from + g.lasts) - std::max(begin, g.from)) / kWindow;
    samples.push_back(kLevel * (1 - slow * g.loss) * std::max(0.01, 1 + noise(g, random)));
  }
  return samples;
}

Expectation noDropOver(double share, const std::string& origin = "standing") {
  Expectation e = expectingOf(kThroughput, "FLOP/s", CheckKind::kDropMax, share);
  e.origin = origin;
  e.warnBand = 0.5;
  return e;
}

bool findsDrop(const Generated& g, std::mt19937_64& random, double tolerance = 0.1) {
  const auto worst = worstStretch(samplesOf(g, random), g.series, Direction::kHigher, kWindow);
  return worst && worst->leastDrop() > tolerance;
}

/// One rank's series, judged by `e`.
Story told(std::vector<double> samples, const Expectation& e, Series series = Series::kWindows) {
  Measurement m;
  m.metric = kThroughput;
  m.unit = "FLOP/s";
  m.direction = Direction::kHigher;
  m.series = series;
  m.window = series == Series::kWindows ? kWindow : 0;
  m.samples = std::move(samples);
  m.informational = true;  // the level itself is not what these tests judge
  Story story;
  story.ends(0).measures(0, std::move(m), 1, "gemm").expects(e);
  return story;
}

const Verdict& of(const StageJudgement& judgement, CheckKind kind) {
  for (const Verdict& v : judgement.verdicts)
    if (v.expectation && v.expectation->kind == kind) return v;
  static const Verdict none;
  ADD_FAILURE() << "no verdict of this kind";
  return none;
}

std::vector<double> lastThirdAt(double share, size_t n = 24) {
  std::vector<double> samples(n, kLevel);
  for (size_t i = n - n / 3; i < n; ++i) samples[i] = kLevel * share;
  return samples;
}

TEST(Drop, InTheLastThirdFailsAndSaysWhen) {
  const Verdict v = told(lastThirdAt(0.05), noDropOver(0.1)).verdict();
  EXPECT_EQ(v.outcome, Outcome::kFail);
  EXPECT_EQ(v.detail,
            "gpu0: 95% below its own level of 620 TFLOP/s from 1m20s to 2m (31 TFLOP/s), required a drop of "
            "at most 10%");
  EXPECT_DOUBLE_EQ(v.observed, 0.95);
}

TEST(Drop, OfOneWindowFails) {
  std::vector<double> samples(120, kLevel);
  samples[77] = kLevel * 0.05;
  const Verdict v = told(samples, noDropOver(0.1)).verdict();
  EXPECT_EQ(v.outcome, Outcome::kFail);
  EXPECT_THAT(v.detail, HasSubstr("from 6m25s to 6m30s"));
}

TEST(Drop, WarnsFromHalfItsLimitOn) {
  EXPECT_STREQ(outcomeName(told(lastThirdAt(0.97), noDropOver(0.1)).verdict().outcome), "pass");
  const Verdict v = told(lastThirdAt(0.93), noDropOver(0.1)).verdict();
  EXPECT_EQ(v.outcome, Outcome::kWarn);
  EXPECT_THAT(v.detail, HasSubstr("7% below its own level"));
}

TEST(Drop, OfATimeIsARise) {
  std::vector<double> seconds(64, 0.1);
  for (size_t i = 48; i < 64; ++i) seconds[i] = 0.2;
  const auto worst = worstStretch(seconds, Series::kRuns, Direction::kLower, 0);
  ASSERT_TRUE(worst);
  EXPECT_NEAR(worst->loss, 0.5, 1e-9);
  EXPECT_NEAR(worst->level, 0.2, 1e-9);
  EXPECT_EQ(spanText(*worst), "from 62.5% to 100% of its time");
}

TEST(Drop, OfRunsIsWeighedByTime) {
  // The last third of the time at 5% of the speed: only four runs of equal work.
  std::vector<double> samples(166, kLevel);
  samples.insert(samples.end(), 4, kLevel * 0.05);
  EXPECT_EQ(told(samples, noDropOver(0.1), Series::kRuns).verdict().outcome, Outcome::kFail);
}

TEST(Drop, IsNotASingleSlowRun) {
  std::vector<double> samples(166, kLevel);
  samples[80] = kLevel / 4;
  EXPECT_EQ(told(samples, noDropOver(0.1), Series::kRuns).verdict().outcome, Outcome::kPass);
}

TEST(Drop, OfADeviceThatIsNoisyIsNotExcusedByIt) {
  std::vector<double> samples;
  for (int i = 0; i < 40; ++i) samples.push_back(i % 2 == 0 ? kLevel : kLevel / 2);
  EXPECT_EQ(told(samples, noDropOver(0.1)).verdict().outcome, Outcome::kFail);
}

TEST(Drop, ToAStandstillFails) {
  std::vector<double> samples(24, kLevel);
  samples[20] = 0;
  EXPECT_EQ(told(samples, noDropOver(0.1)).verdict().outcome, Outcome::kFail);
  for (double& rate : samples) rate = 0;
  EXPECT_EQ(told(samples, noDropOver(0.1)).verdict().outcome, Outcome::kError);
}

TEST(Drop, AcrossRepeatsIsFound) {
  Story story = told(std::vector<double>(6, kLevel), noDropOver(0.1));
  Measurement later = story.evidence.measurements.front();
  for (double& rate : later.samples) rate /= 3;
  later.repeat = 1;
  story.evidence.measurements.push_back(later);
  EXPECT_EQ(story.verdict().outcome, Outcome::kFail);
}

TEST(Drop, InAnEarlierAttemptMakesAPassFlaky) {
  Story story = told(lastThirdAt(0.2), noDropOver(0.1));
  Measurement again = story.evidence.measurements.front();
  again.samples = std::vector<double>(24, kLevel);
  story.ends(0, CaseEnd::State::kOk, "", 2).measures(0, again, 2, "gemm");
  EXPECT_EQ(story.verdict().outcome, Outcome::kFlaky);
}

TEST(Drop, IsJudgedByThePlanBeforeTheProfileBeforeWhatIsBuiltIn) {
  Story story = told(lastThirdAt(0.8), noDropOver(0.1));
  story.expects(noDropOver(0.15, "profile x"));
  EXPECT_EQ(story.verdict().expectation->origin, "profile x");
  story.expects(noDropOver(0.3, "plan"));
  EXPECT_EQ(story.verdict().outcome, Outcome::kWarn);
  EXPECT_EQ(story.verdict().expectation->origin, "plan");
}

TEST(Drop, NeedsSamplesOverTime) {
  EXPECT_EQ(told({kLevel}, noDropOver(0.1)).outcomes(), "") << "one window has no drop";
  const Verdict v = told({kLevel}, noDropOver(0.1, "plan")).verdict();
  EXPECT_EQ(v.outcome, Outcome::kError) << "the plan asks for what the test cannot show";
  EXPECT_THAT(v.detail, HasSubstr("too few"));
}

TEST(Drop, CannotBeHiddenByTakingTheSeriesOutOfTheRecord) {
  const Verdict v = told(lastThirdAt(0.2), noDropOver(0.1), Series::kNone).verdict();
  EXPECT_EQ(v.outcome, Outcome::kError);
  EXPECT_THAT(v.detail, HasSubstr("the time order of its samples"));
}

TEST(WorstLevel, MissesALimitThatTheMedianMeets) {
  Story story = told(lastThirdAt(0.4), noDropOver(0.7));
  story.expects(expectingOf(kThroughput, "FLOP/s", CheckKind::kMin, 400e12));
  const auto judgement = story.judge();
  const Verdict& v = of(judgement, CheckKind::kMin);
  EXPECT_EQ(v.outcome, Outcome::kFail);
  EXPECT_EQ(v.detail,
            "gpu0: 248 TFLOP/s from 1m20s to 2m (median of all samples: 620 TFLOP/s), required at least 400 "
            "TFLOP/s (38% below)");
}

TEST(WorstLevel, IsComparedWithThePeersMedians) {
  Story story;
  for (int rank = 0; rank < 8; ++rank) {
    Measurement m;
    m.metric = kThroughput;
    m.unit = "FLOP/s";
    m.direction = Direction::kHigher;
    m.series = Series::kWindows;
    m.window = kWindow;
    m.samples = rank == 5 ? lastThirdAt(0.8) : std::vector<double>(24, kLevel);
    story.ends(rank).measures(rank, m, 1, "gemm");
  }
  Expectation e = expectingOf(kThroughput, "FLOP/s", CheckKind::kWithin, 0);
  e.tolerance = 0.1;
  story.expects(e).expects(noDropOver(0.9));
  for (const Verdict& v : story.judge().verdicts) {
    if (v.expectation->kind != CheckKind::kWithin) continue;
    EXPECT_EQ(v.outcome, v.device == "gpu5" ? Outcome::kFail : Outcome::kPass) << v.detail;
  }
}

/// As an H100 multiplied at its power limit: it swings by some percent twice a second, which is noise and no
/// warning.
TEST(Drop, WarnsOfWhatGoesBeyondNoise) {
  const auto swinging = [](double drop) {
    std::vector<double> samples;
    for (int i = 0; i < 20; ++i) samples.push_back(kLevel * (1 - (i == 8 ? drop : 0.05 * (i % 2))));
    return samples;
  };
  EXPECT_EQ(told(swinging(0.12), noDropOver(0.1)).verdict().outcome, Outcome::kPass);
  EXPECT_EQ(told(swinging(0.17), noDropOver(0.1)).verdict().outcome, Outcome::kWarn);
  EXPECT_EQ(told(swinging(0.25), noDropOver(0.1)).verdict().outcome, Outcome::kFail);
}

TEST(WorstLevel, OnlyWarnsWhereDropsOnlyWarn) {
  Expectation drop = noDropOver(0.1);
  drop.severity = Severity::kWarn;
  Story story = told(lastThirdAt(0.4), drop);
  story.expects(expectingOf(kThroughput, "FLOP/s", CheckKind::kMin, 400e12));
  EXPECT_EQ(of(story.judge(), CheckKind::kMin).outcome, Outcome::kWarn);
  EXPECT_EQ(of(story.judge(), CheckKind::kDropMax).outcome, Outcome::kWarn);
}

TEST(WorstLevel, IsNotLookedForInSamplesWithoutAnOrder) {
  Story story =
      told(lastThirdAt(0.4), expectingOf(kThroughput, "FLOP/s", CheckKind::kMin, 400e12), Series::kNone);
  EXPECT_EQ(story.verdict().outcome, Outcome::kPass);
}

// What the stated limit promises, over generated series.

TEST(DetectableDrop, IsAlwaysFoundAboveTheStatedSize) {
  std::mt19937_64 random(1);
  const auto between = [&](double low, double high) {
    return std::uniform_real_distribution<>(low, high)(random);
  };
  int tried = 0;
  for (int i = 0; i < 20000; ++i) {
    Generated g;
    g.series = i % 3 == 0 ? Series::kRuns : Series::kWindows;
    g.windows = static_cast<size_t>(between(2, i % 50 == 0 ? 1400 : 200));
    g.runs = static_cast<size_t>(between(32, 1000));
    g.sigma = between(0.0005, 0.01);
    g.lasts = between(0, 1) * g.total();
    const double least = detectableDrop({g.series, g.total(), kWindow, g.runs, g.sigma, 0.1}, g.lasts);
    if (least >= 1) continue;
    g.loss = between(least, std::min(1.0, least * 1.5));
    g.from = between(0, g.total() - g.lasts);
    // Runs that begin slow take longer: what counts is the share of the time that was in fact sampled.
    if (g.series == Series::kRuns) g.from = between(0, g.total() * 0.9 - g.lasts);
    if (g.from < 0) continue;
    ++tried;
    EXPECT_TRUE(findsDrop(g, random))
        << "loss " << g.loss << " for " << g.lasts << " s from " << g.from << " of " << g.windows
        << " windows, sigma " << g.sigma << (g.series == Series::kRuns ? ", runs" : ", windows");
  }
  EXPECT_GT(tried, 10000);
}

TEST(DetectableDrop, IsNotUnderstated) {
  // Half of the stated size is below the tolerance, so it never fails.
  std::mt19937_64 random(2);
  for (int i = 0; i < 2000; ++i) {
    Generated g;
    g.windows = 8 + random() % 100;
    g.sigma = 0.002;
    g.lasts = kWindow * static_cast<double>(1 + random() % (g.windows - 4));
    g.loss = 0.08;
    EXPECT_FALSE(findsDrop(g, random));
  }
}

TEST(DetectableDrop, ShrinksWithItsLength) {
  const auto least = [](double seconds) {
    return detectableDrop({Series::kWindows, 720, 5, 0, 0.005, 0.1}, seconds);
  };
  EXPECT_GT(least(0.5), 1) << "half a second in five cannot be told from noise";
  EXPECT_LT(least(5), 0.4);
  EXPECT_LT(least(60), 0.2);
  for (double seconds = 1; seconds < 600; seconds += 1) EXPECT_LE(least(seconds + 1), least(seconds) + 1e-12);
  EXPECT_GT(detectableDrop({Series::kNone, 720, 5, 0, 0.005, 0.1}, 300), 1);
  EXPECT_GT(detectableDrop({Series::kRuns, 10, 0, 250, 0.005, 0.1}, 0.49), 1)
      << "less than a slice of the time";
  EXPECT_LT(detectableDrop({Series::kRuns, 10, 0, 250, 0.005, 0.1}, 0.51), 0.2);
  EXPECT_GT(detectableDrop({Series::kRuns, 10, 0, 31, 0.005, 0.1}, 5), 1) << "too few runs";
}

TEST(HealthySeries, RaiseNoAlarm) {
  // 10,000 series of each kind: none may fail at up to 1% of noise, skewed noise included.
  std::mt19937_64 random(3);
  int alarms = 0, warnings = 0;
  for (int i = 0; i < 20000; ++i) {
    Generated g;
    g.series = i % 4 == 0 ? Series::kRuns : Series::kWindows;
    g.windows = 2 + random() % (i % 100 == 0 ? 1400 : 150);
    g.runs = 5 + random() % 1000;
    g.sigma = std::uniform_real_distribution<>(0.0005, 0.01)(random);
    g.skewed = i % 2 == 0;
    const auto worst = worstStretch(samplesOf(g, random), g.series, Direction::kHigher, kWindow);
    ASSERT_TRUE(worst);
    alarms += worst->leastDrop() > 0.1;
    warnings += worst->loss > (0.1 + worst->noise) / 2;
  }
  EXPECT_EQ(alarms, 0) << "stated rate: below 1 in 10,000";
  EXPECT_LT(warnings, 400) << "stated rate: below 2 in 100";
  RecordProperty("warnings", warnings);
}

TEST(HealthySeries, SlowDriftBelowTheToleranceIsNotAnAlarm) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 1000; ++i) {
    Generated g;
    g.windows = 144;
    g.sigma = 0.003;
    auto samples = samplesOf(g, random);
    for (size_t k = 0; k < samples.size(); ++k)
      samples[k] *= 1 - 0.04 * static_cast<double>(k) / static_cast<double>(samples.size());
    EXPECT_LT(worstStretch(samples, g.series, Direction::kHigher, kWindow)->leastDrop(), 0.1);
  }
}

}  // namespace
}  // namespace muster
