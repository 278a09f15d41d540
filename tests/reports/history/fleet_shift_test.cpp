// SPDX-License-Identifier: Apache-2.0
// Two fleets side by side: healthy ones differ by chance alone; a shift and an odd node are told apart.
#include "reports/history/fleet_shift.h"

#include <gtest/gtest.h>

#include <random>

namespace muster::history {
namespace {

constexpr int kFigures = 60;

/// Values of one node in figures with noise from run to run of 0.2% to 3%.
std::vector<Point> pointsOf(std::mt19937& random, double factor = 1, int stepped = -1) {
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
      point.median = 100 * run * (figure == stepped ? factor : 1);
      points.push_back(point);
    }
  }
  return points;
}

FleetShifts compared(std::mt19937& random, int nodes, double factor = 1, int stepped = -1, int oddNode = -1) {
  ShiftFinder finder;
  for (int node = 0; node < nodes; ++node) {
    const auto before = pointsOf(random);
    finder.add("n" + std::to_string(node), before, pointsOf(random, node == oddNode ? 0.5 : factor, stepped));
  }
  return finder.finish();
}

TEST(FleetShift, FindsNextToNothingBetweenHealthyFleets) {
  std::mt19937 random(7);
  for (const int nodes : {4, 5, 8, 60}) {
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
  const FleetShifts found = compared(random, 40, 0.93, 10, 3);
  ASSERT_EQ(found.shifts.size(), 1u);
  EXPECT_EQ(found.shifts[0].figure.metric, "m10");
  EXPECT_TRUE(found.shifts[0].worse);
  EXPECT_NEAR(found.shifts[0].change, -0.07, 0.01);
  ASSERT_EQ(found.odd.size(), 1u);
  EXPECT_EQ(found.odd[0].node, "n3");
  EXPECT_TRUE(found.odd[0].worse);
  EXPECT_EQ(found.alike, static_cast<size_t>(kFigures - 1));
}

TEST(FleetShift, CallsABetterMetricChangedOnly) {
  std::mt19937 random(9);
  const FleetShifts found = compared(random, 20, 1.2, 5);
  ASSERT_EQ(found.shifts.size(), 1u);
  EXPECT_FALSE(found.shifts[0].worse);
}

TEST(FleetShift, ComparesTemperaturesInDegrees) {
  ShiftFinder finder;
  for (int node = 0; node < 6; ++node) {
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
  const FleetShifts found = compared(random, 3, 0.5, 1);
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
}

}  // namespace
}  // namespace muster::history
