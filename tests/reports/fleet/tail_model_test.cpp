// SPDX-License-Identifier: Apache-2.0
#include "reports/fleet/peers/tail_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "reports/fleet/peers/robust.h"
#include "runner/core/statistics.h"

namespace muster::fleet {
namespace {

/// A gamma of this shape, standardized, with its long side where bad is; 0: normal. Around its median.
std::vector<double> noise(double shape, size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::gamma_distribution<double> gamma(shape > 0 ? shape : 1);
  std::normal_distribution<double> normal;
  std::vector<double> values(count);
  for (double& value : values)
    value = shape > 0 ? (gamma(random) - shape) / std::sqrt(shape) : normal(random);
  std::vector<double> copy = values;
  const double median = medianOf(copy);
  for (double& value : values) value -= median;
  return values;
}

TailModel tailOf(const std::vector<double>& values, double prior) {
  const double sigma = kMadToSigma * madOf(values, 0);
  const TailFit fit = shrunkFit(TailCounts(values, sigma), prior);
  return {fit.scale * sigma, fit.skew, 0};
}

TEST(TailModel, IsNormalWhereTheNoiseIs) {
  const TailModel tail = tailOf(noise(0, 80000, 1), 0.5);
  EXPECT_LT(tail.skew(), 0.05);
  EXPECT_NEAR(tail.scale(), 1, 0.02);
  EXPECT_NEAR(tail.zOf(5), 5, 0.2);
}

TEST(TailModel, FollowsSkewedNoiseFarBeyondWhatWasSeen) {
  // P(X > x) = 1e-7 of a standardized gamma of shape 16 is at 7.66 around its mean, 7.74 around its median.
  const TailModel tail = tailOf(noise(16, 80000, 2), 0);
  EXPECT_NEAR(tail.skew(), 0.5, 0.1);
  EXPECT_NEAR(tail.zOf(7.74), -normalQuantile(1e-7), 0.25);
}

TEST(TailModel, IsNotMovedByFaultyUnits) {
  std::vector<double> values = noise(0, 80000, 3);
  for (size_t i = 0; i < 4000; ++i) values[i] = 8;
  EXPECT_NEAR(tailOf(values, 0.5).zOf(5), 5, 0.5);
}

TEST(TailModel, UsesThePriorWhereValuesAreFew) {
  EXPECT_EQ(tailOf(noise(0, 60, 4), 0.5).skew(), 0.5);
}

TEST(TailModel, GrowsWithTheDeviationOnBothSides) {
  for (const double skew : {0.0, 0.3, 1.0, 1.9}) {
    const TailModel tail(0.01, skew, 20);
    EXPECT_NEAR(tail.zOf(0), 0, 0.02);
    double before = tail.zOf(-0.2);
    for (double deviation = -0.199; deviation < 0.2; deviation += 0.001) {
      EXPECT_GE(tail.zOf(deviation), before);
      before = tail.zOf(deviation);
    }
    EXPECT_TRUE(std::isfinite(tail.zOf(1e6)));
  }
}

TEST(TailModel, IsLessSureWithLittleFreedom) {
  EXPECT_LT(TailModel(1, 0, 3).zOf(6), TailModel(1, 0, 30).zOf(6));
  EXPECT_LT(TailModel(1, 0, 30).zOf(6), TailModel(1, 0, 0).zOf(6));
}

TEST(Robust, HuberMeanIsAMeanWithoutOutliersAndStandsWithThem) {
  EXPECT_NEAR(huberMean(std::vector<double>{-1, 0, 1, 0.4}, 1), 0.1, 1e-4);
  EXPECT_LT(huberMean(std::vector<double>{-1, 0, 1, 0.4, 1e6}, 1), 0.7);
  EXPECT_NEAR(huberMean(std::vector<double>{0.5, 0.5, 0.5}, 1, 3), 0.25, 1e-3);
  EXPECT_EQ(huberMean(std::vector<double>{}, 1), 0);
}

}  // namespace
}  // namespace muster::fleet
