// SPDX-License-Identifier: Apache-2.0
// Medians against sorting, quantiles against tables.
#include "runner/core/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace muster {
namespace {

using Values = std::vector<double>;

TEST(Median, IsTheMeanOfTheMiddleTwoForAnEvenCount) {
  EXPECT_EQ(medianOf(Values{3, 1, 1000}), 3);
  EXPECT_EQ(medianOf(Values{4, 1, 2, 1000}), 3);
  EXPECT_EQ(medianOf(Values{7}), 7);
}

TEST(Median, OfNothingOrOfWhatIsNotFiniteIsNotANumber) {
  EXPECT_TRUE(std::isnan(medianOf(Values{})));
  EXPECT_TRUE(std::isnan(medianOf(Values{1, kNaN, 2})));
  EXPECT_TRUE(std::isnan(medianOf(Values{1, std::numeric_limits<double>::infinity(), 2})));
}

TEST(Median, AgreesWithSorting) {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    Values values(1 + random() % 200);
    for (double& value : values) value = static_cast<double>(random() % 50) - 25;  // with ties
    Values sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const size_t half = sorted.size() / 2;
    const double wanted = sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
    EXPECT_EQ(medianOf(values), wanted) << "round " << round;
  }
}

TEST(Mad, IsTheMedianDistance) {
  EXPECT_EQ(madOf(Values{1, 2, 3, 4, 1000}, 3), 1);
  EXPECT_TRUE(std::isnan(madOf(Values{}, 0)));
}

TEST(NormalQuantile, AgreesWithTables) {
  EXPECT_NEAR(normalQuantile(0.5), 0, 1e-9);
  EXPECT_NEAR(normalQuantile(0.975), 1.959963985, 1e-8);
  EXPECT_NEAR(normalQuantile(0.05), -1.644853627, 1e-8);
  EXPECT_NEAR(normalQuantile(1e-5), -4.264890794, 1e-8);
  EXPECT_NEAR(normalQuantile(1e-9), -5.997807015, 1e-8);
}

TEST(NormalQuantile, IsTheInverseOfTheTail) {
  for (const double p : {1e-30, 1e-12, 1e-6, 0.01, 0.3, 0.5, 0.7, 0.999})
    EXPECT_NEAR(normalTail(-normalQuantile(p)) / p, 1, 1e-9);
}

TEST(Student, QuantilesBecomeNormalOnes) {
  EXPECT_NEAR(normalFromStudent(2.228139, 10), 1.959964, 0.01);  // two-sided 5%
  EXPECT_NEAR(normalFromStudent(-3.169273, 10), -2.575829, 0.02);
}

TEST(Student, QuantilesAreNearThoseOfTables) {
  EXPECT_NEAR(studentQuantile(0.025, 10), 2.228139, 0.01);
  EXPECT_NEAR(studentQuantile(0.0005, 30), 3.646, 0.01);
  EXPECT_NEAR(studentQuantile(0.0005, 4), 8.610, 0.04 * 8.610);
  EXPECT_NEAR(studentQuantile(0.025, 1e9), 1.959964, 1e-4);
  EXPECT_NEAR(normalTail(normalFromStudent(studentQuantile(1e-4, 6), 6)) / 1e-4, 1, 1e-6);
}

}  // namespace
}  // namespace muster
