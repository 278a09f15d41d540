// SPDX-License-Identifier: Apache-2.0
#include "reports/fleet/peers/node_component.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace muster::fleet {
namespace {

constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kFewestNodes = 5;

struct Made {
  std::vector<double> values;
  NodeBounds first = {0};
};

Made make(size_t nodes, size_t devices, double own, double common) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  Made made;
  for (size_t node = 0; node < nodes; ++node) {
    const double shared = common * normal(random);
    for (size_t i = 0; i < devices; ++i) made.values.push_back(1 + shared + own * normal(random));
    made.first.push_back(made.values.size());
  }
  return made;
}

NodeParts partsOf(const Made& made) {
  return takeApart(made.values, made.first, kFewestNodes);
}

TEST(NodeComponent, SeparatesTheCommonPartFromTheOwn) {
  const NodeParts parts = partsOf(make(1000, 8, 0.01, 0.02));
  EXPECT_NEAR(parts.deviceSigma, 0.01, 0.0005);
  EXPECT_NEAR(parts.nodeSigma, 0.02, 0.002);
  EXPECT_NEAR(parts.center, 1, 0.002);
  EXPECT_EQ(parts.freedom, 7000);
}

TEST(NodeComponent, SeesNoneWhereThereIsNone) {
  EXPECT_LT(partsOf(make(1000, 8, 0.01, 0)).nodeSigma, 0.002);
}

TEST(NodeComponent, DoesNotAttributeASlowNodeToItsDevices) {
  Made made = make(100, 8, 0.01, 0.01);
  for (size_t i = 80; i < 88; ++i) made.values[i] += 0.3;
  const NodeParts parts = partsOf(made);
  EXPECT_NEAR(parts.node[10], 0.3, 0.03);
  for (size_t i = 80; i < 88; ++i) EXPECT_LT(std::abs(parts.own[i]), 0.05);
}

TEST(NodeComponent, DoesNotAttributeASlowDeviceToItsNodeOrNeighbours) {
  Made made = make(100, 8, 0.01, 0.01);
  made.values[83] += 0.5;
  const NodeParts parts = partsOf(made);
  EXPECT_NEAR(parts.own[83], 0.5, 0.05);
  EXPECT_LT(std::abs(parts.node[10]), 0.04);
  EXPECT_LT(std::abs(parts.own[82]), 0.04);
}

TEST(NodeComponent, DoesNotCompareNodesThatAreTooFew) {
  const NodeParts parts = partsOf(make(4, 8, 0.01, 0.01));
  for (const double node : parts.node) EXPECT_TRUE(std::isnan(node));
  EXPECT_EQ(parts.nodeSigma, 0);
  EXPECT_TRUE(std::isfinite(parts.own[0]));
}

TEST(NodeComponent, KnowsNothingOfASingleDeviceOfAFewNodes) {
  Made made = make(3, 4, 0.01, 0.01);
  for (size_t i = 5; i < 8; ++i) made.values[i] = kNotMeasured;
  const NodeParts parts = partsOf(made);
  EXPECT_TRUE(std::isnan(parts.own[4]));
  EXPECT_TRUE(std::isnan(parts.own[5]));
  EXPECT_TRUE(std::isfinite(parts.own[0]));
  EXPECT_EQ(parts.n, 9u);
}

TEST(NodeComponent, ComparesNodesOfOneDeviceDirectly) {
  const Made made = make(50, 1, 0.01, 0);
  const NodeParts parts = partsOf(made);
  for (size_t i = 0; i < 50; ++i) EXPECT_NEAR(parts.own[i], made.values[i] - parts.center, 1e-8);
}

TEST(NodeComponent, SurvivesNoValuesAndEqualOnes) {
  Made made = make(6, 2, 0, 0);
  EXPECT_EQ(partsOf(made).deviceSigma, 0);
  EXPECT_EQ(partsOf(made).own[3], 0);
  for (double& value : made.values) value = kNotMeasured;
  EXPECT_EQ(partsOf(made).n, 0u);
}

}  // namespace
}  // namespace muster::fleet
