// SPDX-License-Identifier: Apache-2.0
// Two runs side by side: healthy ones differ by chance, and never for the worse; a step is found.
#include "reports/history/compare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "tests/reports/history/history_test.h"

namespace muster::history {
namespace {

struct Metric {
  const char* name;
  const char* unit;
  Direction direction;
  double level;
  double noise;  ///< from run to run, share
  double cv;     ///< of the samples within a run
  uint16_t samples;
};

/// What a node measures: temperatures follow their room, and some figures are read once in a run.
constexpr Metric kMetrics[] = {
    {"compute.gemm_throughput", "FLOP/s", Direction::kHigher, 7e14, 0.0005, 0.002, 10},
    {"env.temperature", "degC", Direction::kLower, 33, 0.04, 0, 1},
    {"env.memory_temperature", "degC", Direction::kLower, 36, 0.04, 0.001, 5},
    {"env.start_time", "s", Direction::kLower, 2, 0.03, 0, 1}};

class Compare : public HistoryTest {
 protected:
  /// A run in which the metric `stepped` is `factor` of what it was.
  fleet::NodeSummary runOf(int day, const std::string& stepped = "", double factor = 1,
                           const std::string& name = "n17") {
    fleet::NodeSummary summary = node(day, Acceptance::kAccepted, name);
    summary.figures.clear();
    summary.devices.clear();
    for (int16_t gpu = 0; gpu < 8; ++gpu) {
      const std::string id = "gpu" + std::to_string(gpu);
      summary.devices.push_back({id, "gpu", "H100", "", "S" + id, ""});
      for (const Metric& metric : kMetrics) {
        fleet::FigureKey key;
        key.stage = "all";
        key.metric = metric.name;
        key.unit = metric.unit;
        key.direction = metric.direction;
        const double value =
            metric.level * (1 + metric.noise * normal_(random_)) * (metric.name == stepped ? factor : 1);
        summary.figures.push_back({names_.figures.number(metric.name, [&] { return key; }), gpu,
                                   metric.samples, static_cast<float>(value), static_cast<float>(metric.cv)});
      }
    }
    return summary;
  }
  Comparison compared(Store& store, const std::string& before, const std::string& after) {
    const auto old = store.find(before), now = store.find(after);
    EXPECT_TRUE(old.ok() && now.ok());
    auto found = compareRuns(store, *old, *now);
    EXPECT_TRUE(found.ok());
    return std::move(found).value();
  }
  static std::vector<std::string> worse(const Comparison& comparison) {
    std::vector<std::string> found;
    for (const FigureChange& figure : comparison.figures)
      if (figure.worse) found.push_back(figure.after.device.name + " " + figure.after.figure.metric);
    return found;
  }

  std::mt19937 random_{7};
  std::normal_distribution<double> normal_;
};

TEST_F(Compare, FindsNothingWorseInHealthyRuns) {
  Store store = open();
  constexpr int kRuns = 16;
  for (int run = 1; run <= kRuns; ++run) {
    ASSERT_TRUE(add(store, runOf(run)));
    // With all runs before it, and so with little history too.
    for (int other = 1; other < run; ++other) {
      const Comparison found = compared(store, std::to_string(other), std::to_string(run));
      EXPECT_EQ(worse(found), std::vector<std::string>()) << other << " " << run;
      for (const FigureChange& figure : found.figures)
        EXPECT_EQ(figure.share, figure.after.figure.unit != "degC");
    }
  }
}

TEST_F(Compare, FindsAStepOfTheWholeNodeFromTheSecondRunOn) {
  Store store = open();
  int runs = 0;
  for (const int healthy : {1, 2, 8}) {
    const std::string name = "n" + std::to_string(healthy);
    for (int run = 0; run < healthy; ++run) ASSERT_TRUE(add(store, runOf(++runs, "", 1, name)));
    ASSERT_TRUE(add(store, runOf(++runs, "compute.gemm_throughput", 0.95, name)));
    const Comparison found = compared(store, std::to_string(runs - 1), std::to_string(runs));
    EXPECT_EQ(worse(found).size(), 8u) << healthy;
    for (const std::string& figure : worse(found))
      EXPECT_NE(figure.find("compute.gemm_throughput"), std::string::npos) << figure;
  }
}

TEST_F(Compare, AStageUnderOtherParametersIsNamedAndNotCompared) {
  using Parameters = std::map<std::string, std::string>;
  Store store = open();
  int runs = 0;
  // The later run is 10% slower; each pair is of a node of its own.
  const auto slower = [&](const Parameters& before, const Parameters& after) {
    const std::string name = "n" + std::to_string(runs);
    for (const double factor : {1.0, 0.9}) {
      fleet::NodeSummary run = runOf(++runs, "compute.gemm_throughput", factor, name);
      for (const auto& [key, value] : factor == 1 ? before : after)
        run.facts.push_back({-1, names_.text("stage all: " + key), names_.text(value)});
      EXPECT_TRUE(add(store, run));
    }
    return compared(store, std::to_string(runs - 1), std::to_string(runs));
  };
  const Comparison other =
      slower({{"duration", "30"}, {"bytes", "1"}}, {{"duration", "600"}, {"bytes", "1"}});
  EXPECT_EQ(other.otherStages, std::set<std::string>{"all"});
  EXPECT_TRUE(other.figures.empty());
  EXPECT_EQ(other.underOther, 8 * std::size(kMetrics));
  ASSERT_EQ(other.facts.size(), 1u);
  EXPECT_EQ(other.facts[0].name + " " + other.facts[0].after, "stage all: duration 600");
  // Records of before they were kept, and tests that got one more, are compared as ever.
  for (const Parameters& before : {Parameters{}, Parameters{{"duration", "30"}}}) {
    const Comparison same = slower(before, {{"duration", "30"}, {"warmup", "1"}});
    EXPECT_EQ(worse(same).size(), 8u);
    EXPECT_TRUE(same.facts.empty());
    EXPECT_TRUE(same.otherStages.empty());
  }
}

/// A temperature is worse where the node's own runs say how much it varies, and by degrees.
TEST_F(Compare, FindsATemperatureFarBeyondWhatTheNodesRunsShow) {
  Store store = open();
  for (int run = 1; run <= 8; ++run) ASSERT_TRUE(add(store, runOf(run)));
  ASSERT_TRUE(add(store, runOf(9, "env.temperature", 2)));
  EXPECT_EQ(worse(compared(store, "8", "9")).size(), 8u);
}

}  // namespace
}  // namespace muster::history
