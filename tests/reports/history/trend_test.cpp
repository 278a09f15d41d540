// SPDX-License-Identifier: Apache-2.0
// Steps and slopes: what changed is named with its runs, what only scatters is not.
#include "reports/history/trend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <random>

namespace muster::history {
namespace {

using ::testing::HasSubstr;

/// One value of one part in one run.
struct Point {
  Run run;
  Device device;
  double median = 0;
};

FigureName gemm(Direction direction) {
  return {1, "gemm", "", "compute.gemm_throughput", "FLOP/s", "", direction};
}

/// One figure of eight GPUs over some runs, a week apart; `factor(gpu, run)` is what is wrong with it.
std::vector<Point> node(int runs, unsigned seed, const std::function<double(int, int)>& factor,
                        int gpus = 8) {
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(0, 0.004);
  std::vector<Point> points;
  for (int run = 0; run < runs; ++run)
    for (int gpu = 0; gpu < gpus; ++gpu) {
      Point p;
      p.run.number = run + 1;
      p.run.node = "n17";
      p.run.started = run * 7 * 86400.0;
      p.device = {"gpu" + std::to_string(gpu), "S" + std::to_string(gpu)};
      p.median = 7e14 * (1 + noise(random)) * factor(gpu, run);
      points.push_back(p);
    }
  return points;
}

/// Series of one figure, and what they refer to.
struct Made {
  std::vector<Point> points;
  FigureName figure;
  std::vector<Series> series;
};

std::unique_ptr<Made> seriesFrom(std::vector<Point> points, Direction direction = Direction::kHigher,
                                 const std::set<std::string>& shared = {}) {
  auto made = std::make_unique<Made>(Made{std::move(points), gemm(direction), {}});
  std::vector<Reading> readings;
  for (const Point& p : made->points) readings.push_back({&p.run, &p.device, p.median});
  made->series = seriesOf(made->figure, readings, shared);
  return made;
}

/// What changed, with the series that it refers to.
struct Found : Trends {
  std::unique_ptr<Made> made;
};

Found trendsOf(std::vector<Point> points, Direction direction = Direction::kHigher,
               const std::set<std::string>& shared = {}, const TrendOptions& options = {}) {
  Found found;
  found.made = seriesFrom(std::move(points), direction, shared);
  TrendFinder finder(options);
  finder.add(found.made->series);
  static_cast<Trends&>(found) = finder.finish();
  return found;
}

TEST(Trend, NamesAStepWithTheRunsThatShowIt) {
  const auto found = trendsOf(node(8, 1, [](int gpu, int run) { return gpu == 3 && run >= 5 ? 0.95 : 1.0; }));
  ASSERT_EQ(found.changes.size(), 1u);
  const Change& change = found.changes.front();
  EXPECT_EQ(change.kind, ChangeKind::kStep);
  EXPECT_TRUE(change.worse);
  EXPECT_EQ(change.series.device(), "gpu3");
  EXPECT_EQ(change.series.runs[change.at]->number, 6);
  EXPECT_NEAR(change.change, -0.05, 0.01);
  EXPECT_NEAR(change.noise, 0.004, 0.002);
  EXPECT_THAT(change.seen(), HasSubstr("between run #5"));
  EXPECT_THAT(change.next(), HasSubstr("history compare 5 6"));
}

TEST(Trend, NamesAStepInTheLastRunAlone) {
  const auto found = trendsOf(node(5, 2, [](int gpu, int run) { return gpu == 0 && run == 4 ? 0.94 : 1.0; }));
  ASSERT_EQ(found.changes.size(), 1u);
  EXPECT_EQ(found.changes.front().at, 4u);
}

TEST(Trend, NamesASlope) {
  const auto found = trendsOf(node(12, 3, [](int gpu, int run) { return gpu == 6 ? 1 - 0.006 * run : 1.0; }));
  ASSERT_EQ(found.changes.size(), 1u);
  EXPECT_EQ(found.changes.front().kind, ChangeKind::kSlope);
  EXPECT_NEAR(found.changes.front().perDay, -0.006 / 7, 0.0002);
  EXPECT_THAT(found.changes.front().seen(), HasSubstr("a slope"));
}

TEST(Trend, SeesAWholeNodeGetWorseAtOnce) {
  const auto found = trendsOf(node(8, 4, [](int, int run) { return run >= 4 ? 0.93 : 1.0; }));
  EXPECT_EQ(found.changes.size(), 8u);
}

TEST(Trend, IsQuietOverHealthyNodes) {
  size_t named = 0, looked = 0;
  for (unsigned seed = 100; seed < 300; ++seed) {
    const auto found = trendsOf(node(10, seed, [](int, int) { return 1.0; }));
    named += found.changes.size();
    looked += found.series;
  }
  EXPECT_EQ(looked, 1600u);
  EXPECT_LE(named, 6u) << "the expected rate is one in a hundred nodes";
}

TEST(Trend, OfOneOddRunInBetweenIsNotADegradation) {
  const auto found = trendsOf(node(11, 5, [](int gpu, int run) { return gpu == 2 && run == 5 ? 0.9 : 1.0; }));
  EXPECT_TRUE(found.changes.empty());
}

TEST(Trend, KnowsWhichWayIsWorse) {
  const auto points = node(8, 6, [](int gpu, int run) { return gpu == 1 && run >= 4 ? 1.06 : 1.0; });
  ASSERT_EQ(trendsOf(points, Direction::kLower).changes.size(), 1u);
  EXPECT_TRUE(trendsOf(points, Direction::kLower).changes.front().worse);
  EXPECT_FALSE(trendsOf(points, Direction::kHigher).changes.front().worse);
  EXPECT_FALSE(trendsOf(points, Direction::kNone).changes.front().worse);
}

TEST(Trend, BeginsAnewWithAReplacedPart) {
  auto points = node(8, 7, [](int gpu, int run) { return gpu == 3 && run >= 4 ? 0.95 : 1.0; });
  for (Point& p : points)
    if (p.device.name == "gpu3" && p.run.number >= 5) p.device.serial = "another";
  EXPECT_TRUE(trendsOf(points).changes.empty());
}

/// The runs of two nodes of eight GPUs; from run 6 on, serial S3 of n17 is in n18 as gpu9. `factor(serial,
/// run)`.
std::vector<Point> movedPart(unsigned seed, const std::function<double(const std::string&, int)>& factor) {
  std::vector<Point> points;
  for (const int which : {0, 1}) {
    auto some = node(12, seed + static_cast<unsigned>(which), [](int, int) { return 1.0; });
    for (Point& p : some) {
      p.run.number = p.run.number * 2 + which;
      if (which == 1) {
        p.run.node = "n18";
        p.device.serial = "T" + p.device.serial.substr(1);
      } else if (p.device.serial == "S3" && p.run.started >= 5 * 7 * 86400.0) {
        p.run.node = "n18";
        p.run.number += 1;
        p.device.name = "gpu9";
      }
      p.median *= factor(p.device.serial, static_cast<int>(p.run.started / (7 * 86400.0)));
      points.push_back(p);
    }
  }
  return points;
}

TEST(Trend, FollowsAPartThatWasMoved) {
  const auto healthy = movedPart(20, [](const std::string&, int) { return 1.0; });
  EXPECT_EQ(seriesFrom(healthy)->series.size(), 16u) << "one for each part, not one more for the new place";
  EXPECT_TRUE(trendsOf(healthy).changes.empty());
  // It becomes slow three runs after it was moved: both places together show that.
  const auto found = trendsOf(
      movedPart(20, [](const std::string& s, int run) { return s == "S3" && run >= 8 ? 0.95 : 1.0; }));
  ASSERT_EQ(found.changes.size(), 1u);
  const Change& change = found.changes.front();
  EXPECT_EQ(change.series.serial, "S3");
  EXPECT_EQ(change.series.runs.size(), 12u);
  EXPECT_EQ(change.at, 8u);
  EXPECT_EQ(change.series.place(4), "n17 gpu3");
  EXPECT_EQ(change.series.place(5), "n18 gpu9");
  EXPECT_THAT(change.series.text(), HasSubstr("n18 gpu9 (serial S3, before in n17 gpu3)"));
  EXPECT_THAT(change.next(), HasSubstr("history compare"));
}

TEST(Trend, SaysThatAPartBecameSlowWhereItWasMovedTo) {
  const auto found = trendsOf(
      movedPart(30, [](const std::string& s, int run) { return s == "S3" && run >= 5 ? 0.95 : 1.0; }));
  ASSERT_EQ(found.changes.size(), 1u);
  EXPECT_EQ(found.changes.front().at, 5u);
  EXPECT_THAT(found.changes.front().seen(), HasSubstr("it moved from n17 gpu3 to n18 gpu9"));
  EXPECT_THAT(found.changes.front().next(), HasSubstr("its new position, n18 gpu9"));
}

TEST(Trend, FollowsASlopeAcrossAMove) {
  const auto found = trendsOf(
      movedPart(40, [](const std::string& s, int run) { return s == "S3" ? 1 - 0.006 * run : 1.0; }));
  ASSERT_EQ(found.changes.size(), 1u);
  EXPECT_EQ(found.changes.front().kind, ChangeKind::kSlope);
  EXPECT_EQ(found.changes.front().series.runs.size(), 12u);
}

TEST(Trend, TakesASerialThatTwoDevicesHaveForNone) {
  auto points = node(8, 50, [](int gpu, int run) { return gpu == 3 && run >= 4 ? 0.95 : 1.0; });
  for (Point& p : points) p.device.serial = "N/A";
  const auto found = trendsOf(points, Direction::kHigher, {"N/A"});
  EXPECT_EQ(found.series, 8u);
  ASSERT_EQ(found.changes.size(), 1u);
  EXPECT_EQ(found.changes.front().series.device(), "gpu3");
  EXPECT_EQ(found.changes.front().series.serial, "");
}

TEST(Trend, KeepsPlacesOfTwoNodesApartWhereNoSerialIsKnown) {
  auto points = movedPart(60, [](const std::string&, int) { return 1.0; });
  std::erase_if(points, [](const Point& p) { return p.device.serial == "S3"; });
  for (Point& p : points) p.device.serial.clear();
  EXPECT_EQ(seriesFrom(points)->series.size(), 15u);
}

TEST(Trend, DoesNotMixSimulatedRunsWithRealOnes) {
  auto points = node(8, 8, [](int, int run) { return run >= 4 ? 0.9 : 1.0; });
  for (Point& p : points) p.run.simulated = p.run.number >= 5;
  EXPECT_TRUE(trendsOf(points).changes.empty());
}

TEST(Trend, SaysWhereRunsAreTooFew) {
  const auto few = trendsOf(node(3, 9, [](int, int run) { return run == 2 ? 0.5 : 1.0; }));
  EXPECT_EQ(few.tooFew, 8u);
  EXPECT_TRUE(few.changes.empty());
  const auto one = trendsOf(node(
      4, 9, [](int, int) { return 1.0; }, 1));
  EXPECT_EQ(one.tooFew, 1u) << "three differences do not tell the noise of one device";
  const auto zero = trendsOf(node(9, 9, [](int, int) { return 0.0; }));
  EXPECT_EQ(zero.zero, 8u) << "a level of zero has no shares";
}

TEST(Trend, CountsTheChangesThatItDoesNotList) {
  TrendOptions options;
  options.mostChanges = 3;
  const auto found =
      trendsOf(node(8, 4, [](int gpu, int run) { return run >= 4 ? (gpu == 5 ? 0.8 : 0.93) : 1.0; }),
               Direction::kHigher, {}, options);
  ASSERT_EQ(found.changes.size(), 3u);
  EXPECT_EQ(found.changes.front().series.device(), "gpu5") << "the surest are listed";
  EXPECT_EQ(found.left, 5u);
  EXPECT_EQ(found.worseMeasured, 8u);
  EXPECT_EQ(found.worseSimulated, 0u);
}

/// The limit counts all comparisons of the table, also those that come after a change was seen.
TEST(Trend, JudgesAChangeByTheComparisonsOfTheWholeTable) {
  TrendOptions options;
  options.falseAlarms = 1e-4;
  const auto weak =
      seriesFrom(node(8, 11, [](int gpu, int run) { return gpu == 0 && run >= 4 ? 0.973 : 1.0; }));
  TrendFinder alone(options), among(options);
  alone.add(weak->series);
  const Trends found = alone.finish();
  ASSERT_EQ(found.changes.size(), 1u);
  among.add(weak->series);
  std::vector<std::unique_ptr<Made>> others;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    others.push_back(seriesFrom(node(8, 1000 + seed, [](int, int) { return 1.0; })));
    among.add(others.back()->series);
  }
  for (const Change& change : among.finish().changes) EXPECT_NE(change.series.figure, &weak->figure);
}

}  // namespace
}  // namespace muster::history
