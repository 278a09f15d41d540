// SPDX-License-Identifier: Apache-2.0
#include "reports/fleet/noise_tail.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "reports/fleet/robust.h"

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

NoiseTail tailOf(const std::vector<double>& values, double prior) {
  const double sigma = kMadToSigma * madOf(values, 0);
  const TailFit fit = shrunkFit(TailCounts(values, sigma), prior);
  return {fit.scale * sigma, fit.skew, 0};
}

TEST(NoiseTail, IsNormalWhereTheNoiseIs) {
  const NoiseTail tail = tailOf(noise(0, 80000, 1), 0.5);
  EXPECT_LT(tail.skew(), 0.05);
  EXPECT_NEAR(tail.scale(), 1, 0.02);
  EXPECT_NEAR(tail.zOf(5), 5, 0.2);
}

TEST(NoiseTail, FollowsSkewedNoiseFarBeyondWhatWasSeen) {
  // P(X > x) = 1e-7 of a standardized gamma of shape 16 is at 7.66 around its mean, 7.74 around its median.
  const NoiseTail tail = tailOf(noise(16, 80000, 2), 0);
  EXPECT_NEAR(tail.skew(), 0.5, 0.1);
  EXPECT_NEAR(tail.zOf(7.74), normalFromTail(1e-7), 0.25);
}

TEST(NoiseTail, IsNotMovedByTheSick) {
  std::vector<double> values = noise(0, 80000, 3);
  for (size_t i = 0; i < 4000; ++i) values[i] = 8;
  EXPECT_NEAR(tailOf(values, 0.5).zOf(5), 5, 0.5);
}

TEST(NoiseTail, BelievesThePriorWhereThereIsTooLittle) {
  EXPECT_EQ(tailOf(noise(0, 60, 4), 0.5).skew(), 0.5);
}

TEST(NoiseTail, GrowsWithTheDeviationOnBothSides) {
  for (const double skew : {0.0, 0.3, 1.0, 1.9}) {
    const NoiseTail tail(0.01, skew, 20);
    EXPECT_NEAR(tail.zOf(0), 0, 0.02);
    double before = tail.zOf(-0.2);
    for (double deviation = -0.199; deviation < 0.2; deviation += 0.001) {
      EXPECT_GE(tail.zOf(deviation), before);
      before = tail.zOf(deviation);
    }
    EXPECT_TRUE(std::isfinite(tail.zOf(1e6)));
  }
}

TEST(NoiseTail, IsLessSureWithLittleFreedom) {
  EXPECT_LT(NoiseTail(1, 0, 3).zOf(6), NoiseTail(1, 0, 30).zOf(6));
  EXPECT_LT(NoiseTail(1, 0, 30).zOf(6), NoiseTail(1, 0, 0).zOf(6));
}

TEST(Robust, MedianAndItsDeviation) {
  std::vector<double> odd = {3, 1, 1000};
  EXPECT_EQ(medianOf(odd), 3);
  std::vector<double> even = {4, 1, 2, 1000};
  EXPECT_EQ(medianOf(even), 3);
  std::vector<double> none;
  EXPECT_TRUE(std::isnan(medianOf(none)));
  EXPECT_EQ(madOf(std::vector<double>{1, 2, 3, 4, 1000}, 3), 1);
}

TEST(Robust, MedianOfManyIsThatOfTheSorted) {
  std::mt19937_64 random(7);
  for (size_t count = 1; count < 300; ++count) {
    std::vector<double> values(count);
    // Few different values and many.
    for (double& value : values) value = static_cast<double>(random() % (count % 3 == 0 ? 3 : 1000));
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const double upper = sorted[count / 2];
    const double expected = count % 2 == 1 ? upper : (sorted[count / 2 - 1] + upper) / 2;
    EXPECT_EQ(medianOf(values), expected) << count;
  }
}

TEST(Robust, HuberMeanIsAMeanWithoutOutliersAndStandsWithThem) {
  EXPECT_NEAR(huberMean(std::vector<double>{-1, 0, 1, 0.4}, 1), 0.1, 1e-4);
  EXPECT_LT(huberMean(std::vector<double>{-1, 0, 1, 0.4, 1e6}, 1), 0.7);
  EXPECT_NEAR(huberMean(std::vector<double>{0.5, 0.5, 0.5}, 1, 3), 0.25, 1e-3);
  EXPECT_EQ(huberMean(std::vector<double>{}, 1), 0);
}

TEST(Robust, NormalTailAndBack) {
  EXPECT_NEAR(normalTail(1.959964), 0.025, 1e-7);
  EXPECT_NEAR(normalFromTail(0.025), 1.959964, 1e-5);
  EXPECT_NEAR(normalFromTail(normalTail(7.5)), 7.5, 1e-6);
}

TEST(Robust, StudentsQuantilesBecomeNormalOnes) {
  EXPECT_NEAR(normalFromStudent(2.228139, 10), 1.959964, 0.01);  // two-sided 5%
  EXPECT_NEAR(normalFromStudent(-3.169273, 10), -2.575829, 0.02);
}

}  // namespace
}  // namespace muster::fleet
