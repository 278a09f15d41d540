// SPDX-License-Identifier: Apache-2.0
// How figures spread: normal quantiles, the robust fit, the factor of a tolerance limit.
#include "runner/sku/spread.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "runner/core/statistics.h"
#include "tests/runner/sku/made_fleet.h"

namespace muster {
namespace {

using testing::leftSkewed;
using testing::wholeNormal;

std::vector<double> drawn(size_t n, uint64_t seed, bool skewed, double centre, double sigma) {
  std::vector<double> values;
  for (size_t i = 0; i < n; ++i) {
    const uint64_t key = sim::mix(seed, i);
    values.push_back(centre + sigma * (skewed ? leftSkewed(key) : wholeNormal(key)));
  }
  return values;
}

TEST(FitSpread, FindsCentreSigmaAndNoSkewOfNormalFigures) {
  const Spread spread = fitSpread(drawn(20000, 1, false, 700, 7), FitWindow::kMost, 0);
  EXPECT_NEAR(spread.centre, 700, 0.3);
  EXPECT_NEAR(spread.sigma, 7, 0.2);
  EXPECT_LT(spread.skew, 0.02);
}

TEST(FitSpread, ReachesTheTailOfSkewedFigures) {
  // The share 1e-4 of a skew normal distribution of shape 4 begins 4.91 sigmas from its mean: the half
  // normal's 3.891, less its mean 0.774, over its sigma 0.633. A normal distribution would say 3.72. Two
  // terms of the expansion err on the far side.
  const Spread spread = fitSpread(drawn(40000, 2, true, 0, 1), FitWindow::kMost, 0);
  const double reach = spread.sigma * spread.reach(1e-4) - spread.centre;
  EXPECT_GT(reach, 4.8);
  EXPECT_LT(reach, 5.8);
}

TEST(FitSpread, NeverTightensALimitBecauseTheTailLooksShort) {
  std::vector<double> values = drawn(2000, 3, true, 0, 1);
  for (double& value : values) value = -value;  // the long tail is on the good side
  EXPECT_EQ(fitSpread(values, FitWindow::kMost, 0).skew, 0);
}

TEST(FitSpread, HardlyNoticesOutliers) {
  std::vector<double> values = drawn(1000, 4, false, 100, 1);
  const Spread clean = fitSpread(values, FitWindow::kMiddle, 0);
  for (size_t i = 0; i < 100; ++i) values[i] = 60;
  const Spread dirty = fitSpread(values, FitWindow::kMiddle, 0);
  EXPECT_NEAR(dirty.centre, clean.centre, 0.3);
  EXPECT_LT(dirty.sigma, 1.5 * clean.sigma);
}

TEST(FitSpread, KeepsToTheFloorWhereAllFiguresAgree) {
  const Spread spread = fitSpread(std::vector<double>(50, 7.0), FitWindow::kMost, 0.007);
  EXPECT_EQ(spread.centre, 7);
  EXPECT_EQ(spread.sigma, 0.007);
  EXPECT_EQ(spread.skew, 0);
}

TEST(ClusteringOf, TellsWhatNodesHaveInCommon) {
  std::vector<double> values;
  std::vector<int> nodes;
  for (int node = 0; node < 400; ++node) {
    for (int device = 0; device < 8; ++device) {
      const auto key = static_cast<uint64_t>(node);
      values.push_back(wholeNormal(sim::mix(5, key)) +
                       wholeNormal(sim::mix(sim::mix(6, key), static_cast<uint64_t>(device))));
      nodes.push_back(node);
    }
  }
  const Clustering half = clusteringOf(values, nodes);
  EXPECT_NEAR(half.common, 0.5, 0.05);
  EXPECT_EQ(half.size, 8);
  const auto own = drawn(values.size(), 7, false, 0, 1);
  EXPECT_LT(clusteringOf(own, nodes).common, 0.03);
  EXPECT_EQ(clusteringOf({1, 2}, {0, 1}).common, 0);
}

TEST(ToleranceFactor, FallsWithMoreFiguresTowardsTheTailItself) {
  const Spread normal{0, 1, 0};
  const double tail = 1e-5;
  double last = 100;
  for (const double n : {16.0, 100.0, 1000.0, 1e6}) {
    const double factor = toleranceFactor(normal, tail, 0.95, n, {});
    EXPECT_LT(factor, last);
    EXPECT_GT(factor, normal.reach(tail));
    last = factor;
  }
  EXPECT_NEAR(last, normal.reach(tail), 0.02);
  EXPECT_GT(toleranceFactor(normal, tail, 0.99, 100, {}), toleranceFactor(normal, tail, 0.95, 100, {}));
  EXPECT_GT(toleranceFactor(normal, tail, 0.95, 100, {0.5, 8}), toleranceFactor(normal, tail, 0.95, 100, {}));
}

/// The constants behind toleranceFactor(): how far limits of normal figures really scatter.
TEST(ToleranceFactor, KnowsHowFarFitsScatter) {
  constexpr size_t kFits = 400;
  constexpr size_t kFigures = 200;
  const Spread truth{0, 1, 0};
  const double tail = 1e-5;
  size_t kept = 0;
  for (uint64_t seed = 0; seed < kFits; ++seed) {
    const Spread spread = fitSpread(drawn(kFigures, 1000 + seed, false, 0, 1), FitWindow::kMost, 0);
    const double limit = spread.centre - spread.sigma * toleranceFactor(spread, tail, 0.95, kFigures, {});
    kept += limit <= -truth.reach(tail) ? 1 : 0;
  }
  EXPECT_GE(kept, 0.93 * kFits) << "95% of the limits must spare what they promise";
  EXPECT_LE(kept, kFits);
}

}  // namespace
}  // namespace muster
