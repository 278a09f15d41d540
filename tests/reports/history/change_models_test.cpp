// SPDX-License-Identifier: Apache-2.0
// Steps and slopes are those that trying every split and every pair finds.
#include "reports/history/change_models.h"
#include "runner/core/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace muster::history {
namespace {

double residualAbout(const std::vector<double>& values, size_t begin, size_t end, double level) {
  double sum = 0;
  for (size_t i = begin; i < end; ++i) sum += std::fabs(values[i] - level);
  return sum;
}

ChangeModel stepByTrying(const std::vector<double>& values) {
  ChangeModel best;
  for (size_t at = 1; at < values.size(); ++at) {
    const auto middle = values.begin() + static_cast<long>(at);
    const double before = medianOf({values.begin(), middle}), after = medianOf({middle, values.end()});
    const double residual =
        residualAbout(values, 0, at, before) + residualAbout(values, at, values.size(), after);
    if (residual >= best.residual * (1 - 1e-12)) continue;
    best.residual = residual;
    best.at = at;
    best.before = before;
    best.after = after;
  }
  return best;
}

double slopeByTrying(const std::vector<double>& days, const std::vector<double>& values) {
  std::vector<double> slopes;
  for (size_t i = 0; i < values.size(); ++i)
    for (size_t j = i + 1; j < values.size(); ++j)
      if (days[j] > days[i]) slopes.push_back((values[j] - values[i]) / (days[j] - days[i]));
  return medianOf(slopes);
}

/// Runs at odd times, some of them at once.
std::vector<double> someDays(std::mt19937& random, size_t runs) {
  std::vector<double> days = {0};
  while (days.size() < runs) days.push_back(days.back() + static_cast<double>(random() % 4));
  return days;
}

std::vector<double> someValues(std::mt19937& random, const std::vector<double>& days, double perDay) {
  std::normal_distribution<double> noise(0, 0.004);
  std::vector<double> values;
  const double step = 0.02 * static_cast<double>(random() % 3), at = days.back() / 2;
  for (const double day : days)
    values.push_back(7e14 * (1 + noise(random) + perDay * day + (day > at ? step : 0)));
  return values;
}

TEST(ChangeModels, FindTheStepThatTryingEverySplitFinds) {
  std::mt19937 random(1);
  for (size_t runs = 2; runs < 60; ++runs) {
    const auto days = someDays(random, runs);
    const auto values = someValues(random, days, 0);
    const ChangeModel found = bestStep({days, values, 7e14, 0.004}), tried = stepByTrying(values);
    EXPECT_EQ(found.at, tried.at) << runs;
    EXPECT_NEAR(found.before, tried.before, 1) << runs;
    EXPECT_NEAR(found.after, tried.after, 1) << runs;
    EXPECT_NEAR(found.residual, tried.residual, 100) << runs;
  }
}

TEST(ChangeModels, FindTheMedianSlopeOfAllPairs) {
  std::mt19937 random(2);
  for (size_t runs = 3; runs < 60; ++runs) {
    const auto days = someDays(random, runs);
    if (days.back() == 0) continue;
    const double perDay = 0.001 * (static_cast<double>(random() % 5) - 2);
    const auto values = someValues(random, days, perDay);
    const NoisyValues series{days, values, 7e14, 0.004};
    const ChangeModel found = bestSlope(series);
    const double slope = slopeByTrying(days, values);
    EXPECT_NEAR(found.perDay, slope / 7e14, 1e-9) << runs;
    EXPECT_TRUE(slopeMayExceed(series, 0.999 * found.sigmas)) << runs;
    EXPECT_FALSE(slopeMayExceed(series, 1.5 * found.sigmas + 1)) << runs;
  }
}

TEST(ChangeModels, HaveNoSlopeWhereAllRunsAreAtOneTime) {
  const std::vector<double> days = {0, 0, 0}, values = {1, 2, 3};
  const NoisyValues series{days, values, 2, 0.01};
  EXPECT_TRUE(std::isinf(bestSlope(series).residual));
  EXPECT_FALSE(slopeMayExceed(series, 0));
}

/// No run has such times but one of a file that somebody made up.
TEST(ChangeModels, EndAlsoWhereNoSlopeIsSteepEnough) {
  const std::vector<double> values = {1, 2, 3, 4, 5};
  for (const std::vector<double>& days :
       {std::vector<double>{0, 1e9, 2e9, -1e9, 1}, {0, 1e-320, 2e-320, 3e-320, 4e-320}}) {
    const NoisyValues series{days, values, 2, 0.01};
    EXPECT_EQ(bestSlope(series).kind, ChangeKind::kSlope);
    slopeMayExceed(series, 1);
  }
}

TEST(ChangeModels, OfEqualValuesHaveNoChange) {
  const std::vector<double> days = {0, 1, 2, 3}, values = {5, 5, 5, 5};
  const NoisyValues series{days, values, 5, 0.01};
  EXPECT_EQ(bestStep(series).sigmas, 0);
  EXPECT_EQ(bestSlope(series).sigmas, 0);
}

}  // namespace
}  // namespace muster::history
