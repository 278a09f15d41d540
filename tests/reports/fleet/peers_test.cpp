// SPDX-License-Identifier: Apache-2.0
#include "reports/fleet/peers/peers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "tests/reports/fleet/sim_fleet.h"

namespace muster::fleet::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

PeerFindings findingsOf(const PeerGroup& group, const PeerOptions& options = {}) {
  auto findings = findOutliers(group, options);
  EXPECT_TRUE(findings.ok());
  return findings ? *findings : PeerFindings{};
}

SimFleet fleetOf(size_t nodes, double sigma = 0.01) {
  SimFleet fleet;
  fleet.nodes = nodes;
  fleet.sigma = sigma;
  return fleet;
}

std::string allNotes(const PeerFindings& findings) {
  std::string text;
  for (const std::string& note : findings.notes) text += note + "\n";
  return text;
}

TEST(Peers, NameNobodyInAHealthyFleet) {
  for (const Noise noise : {Noise::kNormal, Noise::kLeftSkewed, Noise::kVeryLeftSkewed}) {
    SimFleet fleet = fleetOf(500, 0.02);
    fleet.noise = noise;
    EXPECT_THAT(findingsOf(simulate(fleet, 11)).outliers, IsEmpty()) << noiseName(noise);
  }
}

TEST(Peers, NameADeviceThatIsFarOffInOneMetric) {
  const PeerGroup group = simulate(fleetOf(200), 1, {{17, 3, false, {4}, 0.12}});
  const PeerFindings findings = findingsOf(group);
  ASSERT_THAT(findings.outliers, SizeIs(1));
  const Outlier& outlier = findings.outliers.front();
  EXPECT_EQ(outlier.level, PeerLevel::kDevice);
  EXPECT_EQ(outlier.node, 17u);
  EXPECT_EQ(outlier.device, 3u);
  EXPECT_THAT(outlier.metricClass, IsEmpty());
  EXPECT_LE(outlier.falseNames, PeerOptions{}.falseNames);
  ASSERT_FALSE(outlier.evidence.empty());
  const PeerEvidence& evidence = outlier.evidence.front();
  EXPECT_EQ(evidence.metric, 4u);
  EXPECT_TRUE(evidence.alone);
  EXPECT_NEAR(evidence.off, -0.12, 0.03);
  EXPECT_EQ(evidence.value, group.values[(17 * 8 + 3) * 10 + 4]);
  EXPECT_NEAR(evidence.beside, 5e14, 5e14 * 0.002);
}

TEST(Peers, NameADeviceThatIsALittleSlowInAllMetricsOfAClass) {
  const PeerFindings findings =
      findingsOf(simulate(fleetOf(300, 0.02), 2, {{40, 6, false, firstMetrics(7), 0.05}}));
  ASSERT_THAT(findings.outliers, SizeIs(1));
  EXPECT_EQ(findings.outliers.front().node, 40u);
  EXPECT_EQ(findings.outliers.front().device, 6u);
  EXPECT_EQ(findings.outliers.front().metricClass, "compute-bound");
  EXPECT_NEAR(findings.outliers.front().classOff, 0.05, 0.02);
}

TEST(Peers, DoNotLetOneMetricNameAClass) {
  const PeerFindings findings = findingsOf(simulate(fleetOf(200), 3, {{9, 0, false, {0}, 0.5}}));
  ASSERT_THAT(findings.outliers, SizeIs(1));
  EXPECT_THAT(findings.outliers.front().metricClass, IsEmpty());
}

TEST(Peers, NameTheNodeAndNotItsDevicesWhenAllOfThemAreSlow) {
  const PeerFindings findings =
      findingsOf(simulate(fleetOf(200), 4, {{50, 0, true, firstMetrics(10), 0.10}}));
  ASSERT_THAT(findings.outliers, SizeIs(1));
  EXPECT_EQ(findings.outliers.front().level, PeerLevel::kNode);
  EXPECT_EQ(findings.outliers.front().node, 50u);
}

TEST(Peers, NameTheDeviceAndNotTheNodeThatHostsIt) {
  const PeerFindings findings =
      findingsOf(simulate(fleetOf(200), 5, {{50, 2, false, firstMetrics(10), 0.60}}));
  ASSERT_THAT(findings.outliers, SizeIs(1));
  EXPECT_EQ(findings.outliers.front().level, PeerLevel::kDevice);
  EXPECT_EQ(findings.outliers.front().device, 2u);
}

TEST(Peers, FindASickDeviceInsideASickNode) {
  const PeerFindings findings =
      findingsOf(simulate(fleetOf(200), 6, {{50, 0, true, {0, 1, 2, 3}, 0.15}, {50, 5, false, {8}, 0.20}}));
  ASSERT_THAT(findings.outliers, SizeIs(2));
  EXPECT_EQ(findings.outliers[0].level, PeerLevel::kNode);
  EXPECT_EQ(findings.outliers[1].level, PeerLevel::kDevice);
  EXPECT_EQ(findings.outliers[1].device, 5u);
}

TEST(Peers, DoNotNameWhatIsBetterThanItsPeers) {
  EXPECT_THAT(findingsOf(simulate(fleetOf(200), 7, {{3, 3, false, {1}, -0.3}})).outliers, IsEmpty());
}

TEST(Peers, FollowTheDirectionOfAMetric) {
  PeerGroup group = simulate(fleetOf(100), 8, {{3, 3, false, {1}, -0.3}});
  group.metrics[1].direction = Direction::kLower;
  ASSERT_THAT(findingsOf(group).outliers, SizeIs(1));
  group.metrics[1].direction = Direction::kNone;
  ASSERT_THAT(findingsOf(group).outliers, SizeIs(1));
  PeerGroup below = simulate(fleetOf(100), 8, {{3, 3, false, {1}, 0.3}});
  below.metrics[1].direction = Direction::kNone;
  ASSERT_THAT(findingsOf(below).outliers, SizeIs(1));
  below.metrics[1].direction = Direction::kLower;
  EXPECT_THAT(findingsOf(below).outliers, IsEmpty());
}

TEST(Peers, FindTheSickWhenOneNodeInTenIsSick) {
  std::vector<Defect> defects;
  for (size_t i = 0; i < 20; ++i) defects.push_back({i * 10, i % 8, false, firstMetrics(7), 0.08});
  const PeerFindings findings = findingsOf(simulate(fleetOf(200), 9, defects));
  ASSERT_THAT(findings.outliers, SizeIs(20));
  for (const Outlier& outlier : findings.outliers) {
    EXPECT_EQ(outlier.node % 10, 0u);
    EXPECT_EQ(outlier.device, outlier.node / 10 % 8);
  }
}

TEST(Peers, JudgeWhatIsThereWhenValuesAreMissing) {
  PeerGroup group = simulate(fleetOf(200), 10, {{20, 1, false, {3}, 0.2}});
  for (size_t i = 0; i < group.values.size(); i += 3)
    if (i != (20 * 8 + 1) * 10 + 3) group.values[i] = kNaN;
  for (size_t device = 0; device < 8; ++device) group.values[(30 * 8 + device) * 10] = kNaN;
  group.values[500] = std::numeric_limits<double>::infinity();
  const PeerFindings findings = findingsOf(group);
  ASSERT_THAT(findings.outliers, SizeIs(1));
  EXPECT_EQ(findings.outliers.front().node, 20u);
  EXPECT_LT(findings.spreads[0].n, 1600u);
}

TEST(Peers, DoNotTakeATinySpreadForPrecision) {
  SimFleet fleet = fleetOf(200, 1e-7);
  EXPECT_THAT(findingsOf(simulate(fleet, 12, {{3, 3, false, {1}, 0.005}})).outliers, IsEmpty());
  EXPECT_THAT(findingsOf(simulate(fleet, 12, {{3, 3, false, {1}, 0.03}})).outliers, SizeIs(1));
}

TEST(Peers, FindOneThatDiffersAmongEqualValues) {
  PeerGroup group = simulate(fleetOf(20), 13);
  std::fill(group.values.begin(), group.values.end(), 7.0);
  EXPECT_THAT(findingsOf(group).outliers, IsEmpty());
  group.values[(4 * 8 + 2) * 10 + 5] = 6;
  const PeerFindings findings = findingsOf(group);
  ASSERT_THAT(findings.outliers, SizeIs(1));
  EXPECT_EQ(findings.outliers.front().node, 4u);
  EXPECT_EQ(findings.outliers.front().evidence.front().off, -1.0 / 7);
}

TEST(Peers, CompareTemperaturesInDegrees) {
  PeerGroup group = simulate(fleetOf(60), 14);
  PeerMetric& metric = group.metrics[0];
  metric.comparison = Comparison::kAbsolute;
  metric.direction = Direction::kLower;
  metric.unit = "degC";
  metric.floor = 1;
  for (size_t i = 0; i < group.values.size(); i += 10)
    group.values[i] = 60 + 1e-14 * (group.values[i] - 1e14) * 200;
  group.values[33 * 10] = 90;
  const PeerFindings findings = findingsOf(group);
  ASSERT_THAT(findings.outliers, SizeIs(1));
  EXPECT_NEAR(findings.outliers.front().evidence.front().off, 30, 1);
  EXPECT_THAT(outlierText(group, findings.outliers.front()),
              HasSubstr("above the median of the 480 devices"));
}

TEST(Peers, SayWhatEightDevicesOfOneNodeCannotTell) {
  SimFleet fleet = fleetOf(1, 0.005);
  for (uint64_t seed = 0; seed < 50; ++seed)
    EXPECT_THAT(findingsOf(simulate(fleet, seed)).outliers, IsEmpty());
  const PeerFindings sick = findingsOf(simulate(fleet, 15, {{0, 5, false, firstMetrics(7), 0.15}}));
  ASSERT_THAT(sick.outliers, SizeIs(1));
  EXPECT_EQ(sick.outliers.front().device, 5u);
  EXPECT_THAT(allNotes(sick), HasSubstr("with 8 devices, the normal variation is uncertain"));
}

TEST(Peers, SayFromWhatSizeOnADeviceIsNamed) {
  const double least = findingsOf(simulate(fleetOf(200), 23)).spreads[4].leastNamed;
  EXPECT_GT(least, 0.03);
  EXPECT_LT(least, 0.05);
  PeerGroup group = simulate(fleetOf(200), 23);
  double& value = group.values[(60 * 8 + 1) * 10 + 4];
  value *= 1 - 2 * least;
  EXPECT_THAT(findingsOf(group).outliers, SizeIs(1));
}

TEST(Peers, SayTooFewToTellRatherThanGuess) {
  SimFleet fleet = fleetOf(3);
  fleet.devices = 2;
  const PeerFindings findings = findingsOf(simulate(fleet, 16, {{0, 0, false, firstMetrics(10), 0.5}}));
  EXPECT_THAT(findings.outliers, IsEmpty());
  EXPECT_THAT(allNotes(findings), HasSubstr("outlier detection needs 8 devices; found 6"));
}

TEST(Peers, SayThatTwoNodesDifferAndNotWhichIsOff) {
  const PeerGroup group = simulate(fleetOf(2), 17, {{1, 0, true, {0}, 0.2}});
  const PeerFindings findings = findingsOf(group);
  EXPECT_THAT(findings.outliers, IsEmpty());
  EXPECT_THAT(allNotes(findings), AllOf(HasSubstr("2 nodes are too few to detect an outlier node"),
                                        HasSubstr("compute-bound-1: node0002 and node0001 differ by"),
                                        ::testing::Not(HasSubstr("compute-bound-2: node"))));
}

TEST(Peers, CompareNodesOfOneDeviceEach) {
  SimFleet fleet = fleetOf(64);
  fleet.devices = 1;
  EXPECT_THAT(findingsOf(simulate(fleet, 18)).outliers, IsEmpty());
  const PeerFindings findings = findingsOf(simulate(fleet, 18, {{7, 0, false, {2}, 0.2}}));
  ASSERT_THAT(findings.outliers, SizeIs(1));
  EXPECT_EQ(findings.outliers.front().node, 7u);
}

/// A node whose devices all report the same makes what is usual look narrow.
TEST(Peers, TellAnOutlierThatOneOtherNodeMakes) {
  size_t named = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    PeerGroup group = simulate(fleetOf(2, 0.001), seed);
    const size_t width = group.metrics.size();
    std::mt19937 random(seed);
    std::normal_distribution<double> silicon(1, 0.006);
    for (size_t device = 0; device < 8; ++device) {
      const double share = silicon(random);
      for (size_t m = 0; m < width; ++m) {
        group.values[(8 + device) * width + m] = group.values[m];
        group.values[device * width + m] *= device == 0 ? 1 : share;
      }
    }
    for (const Outlier& outlier : findingsOf(group).outliers) {
      if (outlier.level == PeerLevel::kGroup || outlier.node != 0) continue;
      ++named;
      EXPECT_FALSE(isOutlierWithoutAny(group, outlier).value()) << seed;
    }
  }
  EXPECT_GT(named, 0u);
}

TEST(Peers, KeepATrueOutlierWithoutAnyOtherNode) {
  for (const size_t nodes : {3u, 6u, 200u}) {
    const PeerGroup group = simulate(fleetOf(nodes), 1, {{2, 3, false, firstMetrics(7), 0.2}});
    const PeerFindings findings = findingsOf(group);
    ASSERT_THAT(findings.outliers, SizeIs(1)) << nodes;
    EXPECT_TRUE(isOutlierWithoutAny(group, findings.outliers.front()).value()) << nodes;
  }
}

TEST(Peers, NameTheWholeGroupBesideWhatIsExpected) {
  PeerGroup group = simulate(fleetOf(50), 19);
  for (size_t m = 0; m < group.metrics.size(); ++m)
    group.metrics[m].expected = 1e14 * static_cast<double>(m + 1);
  EXPECT_THAT(findingsOf(group).outliers, IsEmpty());
  for (double& value : group.values) value *= 0.85;
  const PeerFindings findings = findingsOf(group);
  ASSERT_THAT(findings.outliers, SizeIs(1));
  EXPECT_EQ(findings.outliers.front().level, PeerLevel::kGroup);
  EXPECT_THAT(findings.outliers.front().evidence, SizeIs(10));
  EXPECT_THAT(outlierText(group, findings.outliers.front()),
              AllOf(HasSubstr("all 50 nodes of simulated"), HasSubstr("below the expected value")));
}

TEST(Peers, TellTheSpreadOfDevicesFromThatOfNodes) {
  SimFleet fleet = fleetOf(500, 0.02);
  fleet.commonShare = 0.75;
  const PeerFindings findings = findingsOf(simulate(fleet, 20));
  EXPECT_NEAR(findings.spreads[0].deviceSigma, 0.010, 0.001);
  EXPECT_NEAR(findings.spreads[0].nodeSigma, 0.0173, 0.0025);
  EXPECT_EQ(findings.spreads[0].n, 4000u);
}

TEST(Peers, NoteWhatCannotBeCompared) {
  PeerGroup group = simulate(fleetOf(10), 21);
  for (size_t i = 0; i < group.values.size(); i += 10) {
    group.values[i] = kNaN;
    group.values[i + 1] = 0;
  }
  const PeerFindings findings = findingsOf(group);
  EXPECT_THAT(findings.outliers, IsEmpty());
  EXPECT_THAT(allNotes(findings), AllOf(HasSubstr("compute-bound-1: not measured on any device"),
                                        HasSubstr("compute-bound-2: the median of all devices is 0")));
}

TEST(Peers, RefuseValuesThatDoNotFitTheGroup) {
  PeerGroup group = simulate(fleetOf(2), 22);
  group.values.pop_back();
  const auto findings = findOutliers(group);
  ASSERT_FALSE(findings.ok());
  EXPECT_THAT(findings.error().text(), HasSubstr("159 values of 16 devices and 10 metrics; expected 160"));
}

TEST(Peers, HaveNothingToSayOfAnEmptyGroup) {
  EXPECT_THAT(findingsOf(PeerGroup{}).outliers, IsEmpty());
}

TEST(Peers, TellWhatWasSeenBesideWhomAndHowSure) {
  const PeerGroup group = simulate(fleetOf(200), 1, {{17, 3, false, {4}, 0.12}});
  const std::string text = outlierText(group, findingsOf(group).outliers.at(0));
  EXPECT_THAT(text, AllOf(HasSubstr("gpu3 of node0018: compute-bound-5 is "),
                          HasSubstr("% below the median of the 1600 devices (500"),
                          HasSubstr("expected by chance in under 1 in 1,000 healthy fleets"),
                          HasSubstr("Rerun the stage on this device alone")));
}

}  // namespace
}  // namespace muster::fleet::testing
