// SPDX-License-Identifier: Apache-2.0
// What healthy pairs reach: found among noise, tails and a majority of slow pairs.
#include "plugins/ring/baseline.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace muster::ring {
namespace {

std::vector<double> normalLogs(size_t count, double center, double sigma, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(center, sigma);
  std::vector<double> logs;
  for (size_t i = 0; i < count; ++i) logs.push_back(noise(random));
  return logs;
}

double threshold(const Baseline& base, size_t family) {
  return slowThreshold(base.sigma, base.tail, family);
}

TEST(Baseline, FindsCentreAndScatter) {
  const Baseline base = findBaseline(normalLogs(4096, 3, 0.015, 1), 0.02);
  EXPECT_NEAR(base.center, 3, 0.002);
  EXPECT_NEAR(base.sigma, 0.015, 0.001);
  EXPECT_GT(threshold(base, 4096), 5 * 0.015);
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
  EXPECT_LT(threshold(base, 8), 0.2);
}

TEST(Baseline, WidensWithRealNoise) {
  EXPECT_GT(threshold(findBaseline(normalLogs(500, 0, 0.08, 2), 0.02), 500), 5 * 0.07);
}

TEST(Baseline, KeepsFartherFromALongTail) {
  std::mt19937 random(3);
  std::gamma_distribution<double> gamma(4, 0.01);
  std::vector<double> logs;
  for (int i = 0; i < 4096; ++i) logs.push_back(-gamma(random));
  const Baseline skewed = findBaseline(logs, 0.02);
  const Baseline normal = findBaseline(normalLogs(4096, 0, skewed.sigma, 4), 0.02);
  EXPECT_GT(threshold(skewed, 4096), 1.2 * threshold(normal, 4096));
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
  EXPECT_GT(pooled.factor(), 1.5);
  EXPECT_EQ(Tail().factor(), 1);
}

TEST(Baseline, OfNothingOrOneFigureIsItself) {
  EXPECT_EQ(findBaseline({}, 0.02).center, 0);
  EXPECT_NEAR(findBaseline({5.0}, 0.02).center, 5, 1e-9);
}

TEST(UpperQuantile, IsThatOfTheNormalDistribution) {
  EXPECT_NEAR(upperQuantile(0.025), 1.959964, 1e-5);
  EXPECT_NEAR(upperQuantile(1e-6), 4.753424, 1e-5);
}

}  // namespace
}  // namespace muster::ring
