// SPDX-License-Identifier: Apache-2.0
// Two fleets side by side: healthy ones differ by chance alone; a shift and an odd node are told apart.
#include "reports/history/fleet_shift.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace muster::history {
namespace {

constexpr int kFigures = 60;

/// What of a node is other afterwards: the figure `stepped` (-1: none) by `factor`, on all devices or on one.
struct Step {
  double factor = 1;
  int figure = -1;
  int device = -1;
};

/// Values of one node in figures with noise from run to run of 0.2% to 3%, and of its devices 0.3%.
std::vector<Point> pointsOf(std::mt19937& random, const Step& step = {}) {
  std::normal_distribution<double> normal;
  std::vector<Point> points;
  for (int figure = 0; figure < kFigures; ++figure) {
    const double run = 1 + (0.002 + 0.028 * figure / kFigures) * normal(random);
    for (int gpu = 0; gpu < 8; ++gpu) {
      Point point;
      point.figure.number = figure + 1;
      point.figure.metric = "m" + std::to_string(figure);
      point.figure.direction = Direction::kHigher;
      point.device.name = "gpu" + std::to_string(gpu);
      const bool stepped = figure == step.figure && (step.device < 0 || step.device == gpu);
      point.median = 100 * run * (1 + 0.003 * normal(random)) * (stepped ? step.factor : 1);
      points.push_back(point);
    }
  }
  return points;
}

/// The steps of the first nodes; of all others, `usual`.
FleetShifts compared(std::mt19937& random, int nodes, const Step& usual = {},
                     const std::vector<Step>& first = {}) {
  ShiftFinder finder;
  for (int node = 0; node < nodes; ++node) {
    const auto before = pointsOf(random);
    const auto own = static_cast<size_t>(node);
    finder.add("n" + std::to_string(node), before, pointsOf(random, own < first.size() ? first[own] : usual));
  }
  return finder.finish();
}

std::vector<std::string> worse(const FleetShifts& found) {
  std::vector<std::string> names;
  for (const OddNode& odd : found.odd)
    if (odd.worse) names.push_back(odd.node + odd.device + odd.figure.metric);
  std::sort(names.begin(), names.end());
  return names;
}

TEST(FleetShift, FindsNextToNothingBetweenHealthyFleets) {
  std::mt19937 random(7);
  for (const int nodes : {8, 9, 15, 60}) {
    size_t found = 0;
    for (int i = 0; i < 100; ++i) {
      const FleetShifts shifts = compared(random, nodes);
      found += shifts.shifts.size() + shifts.odd.size();
    }
    EXPECT_LE(found, 8u) << nodes << " nodes";  // one is expected
  }
}

TEST(FleetShift, TellsAShiftFromAnOddNode) {
  std::mt19937 random(8);
  const FleetShifts found = compared(random, 40, {0.93, 10}, {{0.5, 10}});
  ASSERT_EQ(found.shifts.size(), 1u);
  EXPECT_EQ(found.shifts[0].figure.metric, "m10");
  EXPECT_TRUE(found.shifts[0].worse);
  EXPECT_NEAR(found.shifts[0].change, -0.07, 0.01);
  ASSERT_EQ(found.odd.size(), 1u);
  EXPECT_EQ(found.odd[0].node, "n0");
  EXPECT_TRUE(found.odd[0].worse);
  EXPECT_EQ(found.alike, static_cast<size_t>(kFigures - 1));
}

/// Slow nodes are up to half of what there is to compare with: 8%, and of many the last one by another share.
TEST(FleetShift, SeveralSlowNodesOfFewDoNotHideEachOther) {
  std::mt19937 random(12);
  for (const int nodes : {8, 9, 12, 15})
    for (int slow = 1; 2 * slow <= nodes; ++slow) {
      std::vector<Step> first(static_cast<size_t>(slow), Step{0.92, 0});
      if (slow == 2 && nodes > 9) first.back().factor = 0.8;
      std::vector<std::string> expected;
      for (int node = 0; node < slow; ++node) expected.push_back("n" + std::to_string(node) + "m0");
      std::sort(expected.begin(), expected.end());
      const FleetShifts found = compared(random, nodes, {}, first);
      EXPECT_EQ(worse(found), expected) << nodes << " nodes";
      EXPECT_TRUE(found.shifts.empty()) << nodes << " nodes, " << slow << " slow";
    }
}

TEST(FleetShift, MostNodesThatGotSlowerAreTheFleet) {
  std::mt19937 random(13);
  for (const int healthy : {1, 2, 3}) {
    const FleetShifts found =
        compared(random, 8, {0.92, 0}, std::vector<Step>(static_cast<size_t>(healthy), Step{}));
    ASSERT_EQ(found.shifts.size(), 1u);
    EXPECT_TRUE(found.shifts[0].worse);
    EXPECT_NEAR(found.shifts[0].change, -0.08, 0.01);
    EXPECT_EQ(found.odd.size(), static_cast<size_t>(healthy));
    EXPECT_TRUE(worse(found).empty());
  }
}

TEST(FleetShift, NamesADeviceThatGotSlower) {
  std::mt19937 random(14);
  for (const int nodes : {8, 15, 40}) {
    const FleetShifts found = compared(random, nodes, {}, {{0.92, 1, 5}, {0.95, 50, 2}});
    EXPECT_EQ(worse(found), (std::vector<std::string>{"n0gpu5m1", "n1gpu2m50"})) << nodes;
    EXPECT_TRUE(found.shifts.empty());
  }
}

TEST(FleetShift, CallsABetterMetricChangedOnly) {
  std::mt19937 random(9);
  const FleetShifts found = compared(random, 20, {1.2, 5});
  ASSERT_EQ(found.shifts.size(), 1u);
  EXPECT_FALSE(found.shifts[0].worse);
}

TEST(FleetShift, ComparesTemperaturesInDegrees) {
  ShiftFinder finder;
  for (int node = 0; node < 9; ++node) {
    Point point;
    point.figure.number = 1;
    point.figure.unit = "degC";
    point.figure.direction = Direction::kLower;
    point.median = 2 + 0.1 * node;
    Point later = point;
    later.median += 4;  // three times as much, and only four degrees
    finder.add("n" + std::to_string(node), {point}, {later});
  }
  EXPECT_TRUE(finder.finish().shifts.empty());
}

TEST(FleetShift, ComparesNothingOfTooFewNodes) {
  std::mt19937 random(10);
  const FleetShifts found = compared(random, 7, {0.5, 1});
  EXPECT_TRUE(found.shifts.empty());
  EXPECT_EQ(found.tooFew, static_cast<size_t>(kFigures));
}

TEST(FleetShift, ListsWhatOneSideAloneHas) {
  std::mt19937 random(11);
  ShiftFinder finder;
  for (int node = 0; node < 8; ++node) {
    auto before = pointsOf(random), after = pointsOf(random);
    // m0 has no node afterwards, m1 none before; m2 has few afterwards, which is neither.
    std::erase_if(after, [&](const Point& p) {
      return p.figure.metric == "m0" || (p.figure.metric == "m2" && node > 1);
    });
    std::erase_if(before, [](const Point& p) { return p.figure.metric == "m1"; });
    finder.add("n" + std::to_string(node), before, after);
  }
  const FleetShifts found = finder.finish();
  ASSERT_EQ(found.onlyBefore.size(), 1u);
  EXPECT_EQ(found.onlyBefore[0].metric, "m0");
  ASSERT_EQ(found.onlyAfter.size(), 1u);
  EXPECT_EQ(found.onlyAfter[0].metric, "m1");
  EXPECT_EQ(found.tooFew, 1u);
  EXPECT_EQ(found.few.size(), 1u) << "m2 can be compared run by run";
}

TEST(FleetShift, CountsNodesAndNotTheirRuns) {
  std::mt19937 random(12);
  ShiftFinder finder;
  for (int run = 0; run < 20; ++run)
    finder.add(run < 7 ? "n" + std::to_string(run) : "n7", pointsOf(random), pointsOf(random));
  EXPECT_EQ(finder.finish().tooFew, 0u);
  ShiftFinder fewer;
  for (int run = 0; run < 20; ++run)
    fewer.add(run < 6 ? "n" + std::to_string(run) : "n6", pointsOf(random), pointsOf(random));
  const FleetShifts found = fewer.finish();
  EXPECT_EQ(found.tooFew, static_cast<size_t>(kFigures));
  EXPECT_EQ(found.few.size(), static_cast<size_t>(kFigures));
}

}  // namespace
}  // namespace muster::history
