// SPDX-License-Identifier: Apache-2.0
// What external load explains: no healthy device is rejected for it, and no slow one excused by little of it.
#include "runner/judge/external_load.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ctime>
#include <random>

#include "tests/runner/judge/evidence.h"

namespace muster {
namespace {
using namespace testing;

Story under(double share, Story story) {
  story.evidence.externalLoad.push_back({"gemm", 1, share, share, share, "stress-ng(123)"});
  return story;
}

Story measuring(double rate) {
  return Story().ends(0).measures(0, {rate, rate, rate});
}

Expectation ofTime(double limit) {
  return expectingOf("compute.copy", "s", CheckKind::kMax, limit);
}

Story taking(double seconds) {
  Measurement m;
  m.metric = "compute.copy";
  m.unit = "s";
  m.direction = Direction::kLower;
  m.samples = {seconds};
  return Story().ends(0).measures(0, m, 1, "gemm");
}

TEST(ExternalLoad, LeavesWhatTheShareOfOthersLeaves) {
  EXPECT_EQ(attainableUnderLoad(0), 1);
  EXPECT_EQ(attainableUnderLoad(1), 0.01);
  for (double share = 0.01; share < 0.25; share += 0.01) {
    EXPECT_LT(attainableUnderLoad(share), attainableUnderLoad(share - 0.01));
    EXPECT_LE(attainableUnderLoad(share), 1 - share);
    EXPECT_GE(attainableUnderLoad(share), 1 - 2 * share);
  }
}

TEST(ExternalLoad, AMissThatItExplainsIsAnErrorThatNamesIt) {
  const Verdict verdict = under(0.5, measuring(4e14)).expects(atLeast(6.5e14)).verdict();
  EXPECT_EQ(verdict.outcome, Outcome::kError);
  EXPECT_EQ(verdict.detail,
            "gpu0: 400 TFLOP/s, required at least 650 TFLOP/s (38% below); not measurable: external load "
            "(stress-ng(123)) took 50% of the CPU time, which explains the miss");
  EXPECT_EQ(verdict.remedy, "Stop other work on this node, then run again");
  EXPECT_EQ(measuring(4e14).expects(atLeast(6.5e14)).verdict().remedy, "Check the clocks");
  EXPECT_EQ(under(0.5, taking(2)).expects(ofTime(1)).outcomes(), "error");
  EXPECT_EQ(taking(2).expects(ofTime(1)).outcomes(), "fail");
}

TEST(ExternalLoad, AHealthyDeviceIsNeverRejectedForIt) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> part(0, 1);
  for (int trial = 0; trial < 2000; ++trial) {
    const double share = 0.98 * part(random);
    const double reached = attainableUnderLoad(share) + part(random) * (1 - attainableUnderLoad(share));
    const double limit = std::exp(20 * part(random)), healthy = limit * (1 + part(random));
    EXPECT_NE(under(share, measuring(healthy * reached)).expects(atLeast(limit)).outcomes(), "fail");
    EXPECT_NE(under(share, taking(limit / (1 + part(random)) / reached)).expects(ofTime(limit)).outcomes(),
              "fail");
    Expectation steady = expecting(CheckKind::kCvMax, 0.05);
    EXPECT_NE(under(share, Story().ends(0).measures(0, {healthy, healthy * reached, healthy}))
                  .expects(steady)
                  .outcomes(),
              "fail")
        << share << " " << reached;
  }
}

TEST(ExternalLoad, ASlowDeviceIsNotExcusedByLittleOfIt) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> part(0, 1);
  for (int trial = 0; trial < 2000; ++trial) {
    const double share = 0.25 * part(random);
    const double missed = std::min(1.0, 2 * share + 0.001 + part(random));  // more than twice its share
    const double rate = 6.5e14 * (1 - missed) * 0.999;
    if (rate > 0) {
      EXPECT_EQ(under(share, measuring(rate)).expects(atLeast(6.5e14)).outcomes(), "fail");
    }
    // ... and never by more than a hundred times.
    EXPECT_EQ(under(part(random), measuring(6.49e12)).expects(atLeast(6.5e14)).outcomes(), "fail");
  }
}

/// Ranks that wait for one another at each step lose more than each of them alone.
TEST(ExternalLoad, HalfOfTheCpuTimeExplainsAnyMissOfAGroupAndLessDoesNot) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> part(0, 1);
  const auto group = [](double share, Story story, const char* ranks) {
    story.evidence.leaderMetrics = {kThroughput, "compute.copy"};
    story.evidence.caseLabels["gemm"]["ranks"] = ranks;
    return under(share, std::move(story));
  };
  for (int trial = 0; trial < 500; ++trial) {
    const double share = part(random), left = 0.0099 * (0.01 + 0.99 * part(random));
    const std::string rejected = share >= 0.5 ? "error" : "fail";
    EXPECT_EQ(group(share, measuring(6.5e14 * left), "8").expects(atLeast(6.5e14)).outcomes(), rejected);
    EXPECT_EQ(group(share, taking(1 / left), "8").expects(ofTime(1)).outcomes(), rejected);
    // One rank waits for nobody, and neither does what each rank measures for itself.
    EXPECT_EQ(group(share, measuring(6.5e14 * left), "1").expects(atLeast(6.5e14)).outcomes(), "fail");
    EXPECT_EQ(under(share, measuring(6.5e14 * left)).expects(atLeast(6.5e14)).outcomes(), "fail");
    // Nor is what is too fast, or wrong, or what is met.
    EXPECT_EQ(group(share, measuring(9e14), "8")
                  .expects(expectingOf(kThroughput, "FLOP/s", CheckKind::kMax, 6.5e14))
                  .outcomes(),
              "fail");
    EXPECT_EQ(group(share, measuring(9e14), "8").expects(atLeast(6.5e14)).outcomes(), "pass");
  }
}

TEST(ExternalLoad, ExcusesNoWrongResult) {
  const Story base = Story().ends(0);
  for (const double share : {0.1, 0.5, 0.99, 1.0}) {
    EXPECT_EQ(under(share, Story(base).measures(0, {1}, "compute.wrong"))
                  .expects(expectingOf("compute.wrong", "count", CheckKind::kMax, 0))
                  .outcomes(),
              "fail");
    EXPECT_EQ(
        under(share, Story(base).says(0, "550")).expects(onText(CheckKind::kEquals, {"570"})).outcomes(),
        "fail");
    EXPECT_EQ(under(share, Story(base).measures(0, {90}, "env.temperature"))
                  .expects(expectingOf("env.temperature", "degC", CheckKind::kMax, 85))
                  .outcomes(),
              "fail");
    EXPECT_EQ(under(share, measuring(9e14))
                  .expects(expectingOf(kThroughput, "FLOP/s", CheckKind::kMax, 6.5e14))
                  .outcomes(),
              "fail")
        << "load makes nothing faster";
  }
}

TEST(ExternalLoad, CountsForItsCaseAndAttemptOnly) {
  Story story = measuring(4e14).expects(atLeast(6.5e14));
  story.evidence.externalLoad = {{"other", 1, 0.9, 0.9, 0.9, "x"}, {"gemm", 2, 0.9, 0.9, 0.9, "x"}};
  EXPECT_EQ(story.outcomes(), "fail");
}

/// Going through all of them for each figure takes half a minute.
TEST(ExternalLoad, OfAMillionCasesIsFoundAtOnce) {
  Story story;
  for (int rank = 0; rank < 3000; ++rank) story.ends(rank).measures(rank, {4e14});
  for (int i = 0; i < 1'000'000; ++i)
    story.evidence.externalLoad.push_back({std::to_string(1000 + i), 1, 0.9, 0.9, 0.9, "x"});
  story.evidence.externalLoad.push_back({"gemm", 1, 0.9, 0.9, 0.9, "x"});
  story.expects(atLeast(6.5e14));
  const std::clock_t before = std::clock();
  EXPECT_EQ(story.judge().accounting.of(Outcome::kError), 3000u);
  EXPECT_LT((std::clock() - before) / CLOCKS_PER_SEC, 10);
}

TEST(ExternalLoad, AShortBurstExplainsTheWorstSampleAndNotTheMedian) {
  Story story = measuring(4e14);
  story.evidence.externalLoad = {{"gemm", 1, 0, 0.05, 0.9, "cron(7)"}};
  Expectation worst = atLeast(6.5e14);
  worst.statistic = "min";
  EXPECT_EQ(Story(story).expects(worst).outcomes(), "error");
  EXPECT_EQ(Story(story).expects(atLeast(6.5e14)).outcomes(), "fail");
}

TEST(ExternalLoad, ABurstExplainsADropOverTimeButNoDeeperOne) {
  const auto dropping = [](double level, double peak) {
    Measurement m;
    m.metric = "compute.windows";
    m.unit = "FLOP/s";
    m.direction = Direction::kHigher;
    m.series = Series::kWindows;
    m.window = 5;
    m.informational = true;
    m.samples.assign(20, 7e14);
    for (size_t i = 14; i < m.samples.size(); ++i) m.samples[i] *= level;
    Story story = Story().ends(0).measures(0, m, 1, "gemm");
    story.evidence.externalLoad = {{"gemm", 1, 0, 0.1, peak, "cron(7)"}};
    return story.expects(expectingOf("compute.windows", "FLOP/s", CheckKind::kDropMax, 0.1)).outcomes();
  };
  EXPECT_EQ(dropping(0.75, 0.2), "error");
  EXPECT_EQ(dropping(0.3, 0.2), "fail");
  EXPECT_EQ(dropping(0.75, 0), "fail");
}

TEST(ExternalLoad, AMissedConditionOfAMeasurementIsAnError) {
  Expectation quota = expectingOf("compute.wrong", "count", CheckKind::kMax, 0);
  quota.origin = "condition";
  EXPECT_EQ(Story().ends(0).measures(0, {1}, "compute.wrong").expects(quota).outcomes(), "error");
  EXPECT_EQ(Story().ends(0).measures(0, {0}, "compute.wrong").expects(quota).outcomes(), "pass");
}

}  // namespace
}  // namespace muster
