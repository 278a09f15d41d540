// SPDX-License-Identifier: Apache-2.0
// Matrices of pairs: where each value stands, what is worst, and what is left out.
#include "reports/html/plots/heat_map.h"

#include <gtest/gtest.h>

#include <cmath>

namespace muster {
namespace {

Measurement pairOf(const std::string& a, const std::string& b, std::vector<double> samples,
                   const std::string& rail = "all") {
  Measurement m;
  m.metric = "ring.pair_bandwidth";
  m.unit = "B/s";
  m.direction = Direction::kHigher;
  m.labels = {{"a", a}, {"b", b}, {"rail", rail}, {"device", "gpu0"}};
  m.samples = std::move(samples);
  return m;
}

TEST(HeatMap, PutsTheWorstSampleOfAPairInItsPlace) {
  StageRecord stage;
  stage.measurements = {pairOf("n2", "n10", {40, 42}), pairOf("n1", "n2", {100, 100}),
                        pairOf("n10", "n1", {101, 99})};
  size_t dropped = 9;
  const auto maps = heatMapsOf(stage, dropped);
  ASSERT_EQ(maps.size(), 1u);
  EXPECT_EQ(dropped, 0u);
  EXPECT_EQ(maps[0].title, "pair_bandwidth, rail=all");
  EXPECT_EQ(maps[0].names, (std::vector<std::string>{"n1", "n2", "n10"}));
  EXPECT_EQ(maps[0].values.at({1, 2}), 40);
  EXPECT_EQ(maps[0].values.at({0, 1}), 100);
  EXPECT_EQ(maps[0].values.at({0, 2}), 99);
  EXPECT_EQ(maps[0].typical, 99);
  EXPECT_NEAR(maps[0].worstShare(), 40.0 / 99, 1e-9);
}

TEST(HeatMap, TakesTheLargestWhereLessIsBetter) {
  StageRecord stage;
  stage.measurements = {pairOf("x", "y", {1, 4}), pairOf("y", "z", {2, 2}), pairOf("x", "z", {2, 2})};
  for (Measurement& m : stage.measurements) m.direction = Direction::kLower;
  size_t dropped = 0;
  const auto maps = heatMapsOf(stage, dropped);
  ASSERT_EQ(maps.size(), 1u);
  EXPECT_EQ(maps[0].values.at({0, 1}), 4);
  EXPECT_NEAR(maps[0].worstShare(), 0.5, 1e-9);
}

TEST(HeatMap, ShowsTheSlowestRailsFirstAndCountsTheRest) {
  StageRecord stage;
  for (int rail = 0; rail < 6; ++rail) {
    stage.measurements.push_back(pairOf("a", "b", {100}, std::to_string(rail)));
    stage.measurements.push_back(pairOf("b", "c", {100}, std::to_string(rail)));
    stage.measurements.push_back(pairOf("a", "c", {rail == 4 ? 50.0 : 100.0}, std::to_string(rail)));
  }
  size_t dropped = 0;
  const auto maps = heatMapsOf(stage, dropped);
  ASSERT_EQ(maps.size(), 4u);
  EXPECT_EQ(maps[0].title, "pair_bandwidth, rail=4");
  EXPECT_EQ(dropped, 2u);
}

TEST(HeatMap, LeavesOutWhatIsNotAPairAndWhatIsNotANumber) {
  StageRecord stage;
  stage.measurements = {pairOf("a", "b", {std::nan("")}), pairOf("a", "b", {})};
  Measurement single = pairOf("a", "b", {1});
  single.labels.erase("b");
  stage.measurements.push_back(single);
  size_t dropped = 0;
  EXPECT_TRUE(heatMapsOf(stage, dropped).empty());
}

TEST(HeatMap, OfTooManyNamesIsCountedAndNotDrawn) {
  StageRecord stage;
  for (int i = 0; i < 80; ++i)
    stage.measurements.push_back(pairOf("n" + std::to_string(i), "n" + std::to_string(i + 1), {1}));
  size_t dropped = 0;
  EXPECT_TRUE(heatMapsOf(stage, dropped).empty());
  EXPECT_EQ(dropped, 1u);
  for (int i = 80; i < 100'000; ++i)  // searching each in a list of them would take many minutes
    stage.measurements.push_back(pairOf("n" + std::to_string(i), "n" + std::to_string(i + 1), {1}));
  EXPECT_TRUE(heatMapsOf(stage, dropped).empty());
  EXPECT_EQ(dropped, 1u);
}

}  // namespace
}  // namespace muster
