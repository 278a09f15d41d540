// SPDX-License-Identifier: Apache-2.0
// What healthy pairs reach: found among noise, tails and a majority of slow pairs.
#include "plugins/ring/solver/baseline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <tuple>

#include "plugins/ring/solver/lane_figures.h"

namespace muster::ring {
namespace {

std::vector<double> normalLogs(size_t count, double center, double sigma, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(center, sigma);
  std::vector<double> logs;
  for (size_t i = 0; i < count; ++i) logs.push_back(noise(random));
  return logs;
}

Limits limits(const Baseline& base, size_t family) {
  return limitsOf(base, base.tail, family);
}

TEST(Baseline, FindsCentreAndScatter) {
  const Baseline base = findBaseline(normalLogs(4096, 3, 0.015, 1), 0.02);
  EXPECT_NEAR(base.center, 3, 0.002);
  EXPECT_NEAR(base.sigma, 0.015, 0.001);
  EXPECT_GT(limits(base, 4096).slow, 5 * 0.015);
}

TEST(Baseline, BelievesFewFiguresTheFloor) {
  const std::vector<double> equal(8, 3.0);
  const Baseline base = findBaseline(equal, 0.02);
  EXPECT_NEAR(base.center, 3, 1e-9);
  EXPECT_GT(base.sigma, 0.015);
}

TEST(Baseline, FollowsTheFastWhereSixOfEightAreSlow) {
  const double slow = 3 + std::log(0.8);
  const Baseline base = findBaseline({3.0, 3.01, slow, slow + 0.01, slow, slow - 0.02, slow, slow}, 0.02);
  EXPECT_NEAR(base.center, 3.005, 0.01);
  EXPECT_LT(limits(base, 8).slow, 0.2);
}

TEST(Baseline, WidensWithRealNoise) {
  EXPECT_GT(limits(findBaseline(normalLogs(500, 0, 0.08, 2), 0.02), 500).slow, 5 * 0.07);
}

TEST(Baseline, KeepsFartherFromALongTail) {
  std::mt19937 random(3);
  std::gamma_distribution<double> gamma(4, 0.01);
  std::vector<double> logs;
  for (int i = 0; i < 4096; ++i) logs.push_back(-gamma(random));
  const Baseline skewed = findBaseline(logs, 0.02);
  const Baseline normal = findBaseline(normalLogs(4096, 0, skewed.sigma, 4), 0.02);
  const Limits far = limits(skewed, 4096), near = limits(normal, 4096);
  EXPECT_GT(far.slow, 1.2 * near.slow);
  EXPECT_GT(far.remeasure, 1.2 * near.remeasure);
}

/// Whether one in `chance` healthy tests has a figure beyond the limit; the noise is a gamma's of shape 4.
TEST(Limits, AreWhatTheySayOfSkewedNoiseToo) {
  constexpr int kTests = 400;
  constexpr size_t kFigures = 1024;
  std::mt19937 random(6);
  std::gamma_distribution<double> gamma(4, 0.005);
  int remeasured = 0, slow = 0;
  double again = 0;
  for (int test = 0; test < kTests; ++test) {
    std::vector<double> logs;
    for (size_t i = 0; i < kFigures; ++i) logs.push_back(-gamma(random));
    const Baseline base = findBaseline(logs, 0.02);
    const Limits limit = limits(base, kFigures);
    const auto beyond = [&](double loss) {
      return std::count_if(logs.begin(), logs.end(), [&](double log) { return base.center - log > loss; });
    };
    remeasured += beyond(limit.remeasure) > 0 ? 1 : 0;
    slow += beyond(limit.slow) > 0 ? 1 : 0;
    again += static_cast<double>(beyond(limit.slowAgain)) / static_cast<double>(kFigures);
  }
  EXPECT_LT(remeasured, kTests / 4) << "one in ten is meant";
  EXPECT_GT(remeasured, 0);
  EXPECT_LE(slow, 1);
  EXPECT_LT(again / kTests, 0.01) << "0.003 is meant";
  EXPECT_GT(again / kTests, 0.0003);
}

TEST(Limits, AreInOrder) {
  for (const size_t family : {1, 8, 100, 5000, 100000}) {
    const Limits limit = limits(findBaseline(normalLogs(200, 0, 0.02, 7), 0.02), family);
    EXPECT_LE(limit.remeasure, limit.slow) << family;
    EXPECT_GE(limit.slowAgain, 0.03) << family;
  }
}

TEST(Tail, OfSeveralLanesIsThatOfAllTheirFigures) {
  std::mt19937 random(5);
  std::exponential_distribution<double> noise(50);
  Tail pooled;
  for (int lane = 0; lane < 8; ++lane) {
    std::vector<double> logs;
    for (int i = 0; i < 1024; ++i) logs.push_back(-noise(random));
    pooled += findBaseline(logs, 0.02).tail;
  }
  EXPECT_GT(pooled.figures, 8 * 400);
  EXPECT_GT(pooled.factor(1.2), 1.5);
  EXPECT_EQ(Tail().factor(1), 1);
}

TEST(Tail, ReachesFartherForRarerFigures) {
  constexpr double kNormalCubes = 1.5958;
  const Tail tail = {1.3 * kNormalCubes * 1e6, 1e6};
  EXPECT_NEAR(tail.factor(1), 1.3, 1e-3);
  EXPECT_NEAR(tail.factor(2), 1.69, 1e-3);
  EXPECT_NEAR(tail.factor(9), 2, 1e-3) << "some shapes have no end";
  EXPECT_EQ((Tail{kNormalCubes * 0.5e6, 1e6}.factor(1)), 1) << "a short tail is no reason to be stricter";
}

TEST(Baseline, OfNothingOrOneFigureIsItself) {
  EXPECT_EQ(findBaseline({}, 0.02).center, 0);
  EXPECT_NEAR(findBaseline({5.0}, 0.02).center, 5, 1e-9);
}

TEST(Resolution, IsLostWhereNoiseHidesHalfOfTheSpeed) {
  const double speed = 48e9;
  for (const auto& [floor, spread, blind] : {std::tuple{0.02, 0.0, false},
                                             {0.02, 0.05, false},
                                             {0.02, 0.5, true},
                                             {0.2, 0.1, false},
                                             {0.2, 0.5, true}}) {
    RoundLog log(8, {}, {Lane{Quantity::kBandwidth, "all", floor}});
    for (size_t round = 0; round < log.opening().size(); ++round)
      for (const Pair& pair : log.opening()[round]) log.add(static_cast<int>(round), pair, &speed, &spread);
    EXPECT_EQ(resolutionOf(log).blind, blind) << "floor " << floor << ", spread " << spread;
  }
}

}  // namespace
}  // namespace muster::ring
