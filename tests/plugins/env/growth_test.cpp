// SPDX-License-Identifier: Apache-2.0
// Counters as growth.
#include "plugins/env/growth.h"

#include <gtest/gtest.h>

#include <random>

namespace muster::env {
namespace {

Reading counter(double value, const std::string& device = "gpu0", const std::string& text = "") {
  return {reading::kXidFatal, "count", device, value, text, {}};
}

TEST(Growth, TheFirstValueIsHistory) {
  Growth growth;
  EXPECT_FALSE(growth.since(counter(7)));
  EXPECT_EQ(growth.since(counter(7))->value, 0);
  EXPECT_EQ(growth.since(counter(9))->value, 2);
}

TEST(Growth, HistoryCountsWhenItBelongsToWhatIsLookedAt) {
  Growth growth;
  growth.startAtZero();
  EXPECT_EQ(growth.since(counter(7))->value, 7);
}

TEST(Growth, DevicesAndLabelsAreApart) {
  Growth growth;
  (void)growth.since(counter(1, "gpu0"));
  EXPECT_FALSE(growth.since(counter(5, "gpu1")));
  Reading labelled = counter(3);
  labelled.labels["cgroup"] = "/a";
  EXPECT_FALSE(growth.since(labelled));
}

TEST(Growth, EveryCounterOfAnRdmaPortIsOne) {
  Growth growth;
  const auto reading = [](const char* port, double value) {
    return Reading{"rdma_link_downed", "count", "", value, "", {{"port", port}}};
  };
  EXPECT_FALSE(growth.since(reading("mlx5_0/1", 3)));
  EXPECT_FALSE(growth.since(reading("mlx5_1/1", 5)));
  EXPECT_EQ(growth.since(reading("mlx5_0/1", 4))->value, 1);
  EXPECT_EQ(growth.since(reading("mlx5_1/1", 5))->value, 0);
}

TEST(Growth, ACounterThatFellCountsFromZero) {
  Growth growth;
  (void)growth.since(counter(100));
  EXPECT_EQ(growth.since(counter(3))->value, 3);
}

TEST(Growth, GoesOnFromAnEarlierProcess) {
  Growth before;
  const Reading replays{reading::kPcieReplay, "count", "gpu0", 4, "", {}};
  const Reading throttled{reading::kThrottleThermal, "s", "gpu0", 4, "", {}};
  for (const Reading& one : {counter(7), counter(9, "gpu1"), replays, throttled}) (void)before.since(one);
  const auto after = [&](bool withLog) {
    Growth growth;
    growth.resume(*parseJson(dumpJson(before.counts(withLog))));
    return growth;
  };
  Growth growth = after(true);
  const auto next = [&](Reading reading, double value) {
    reading.value = value;
    return growth.since(reading);
  };
  EXPECT_EQ(next(replays, 6)->value, 2) << "between the two processes";
  EXPECT_EQ(next(replays, 7)->value, 1);
  EXPECT_EQ(next(counter(0), 1)->value, 1) << "the log is read from where it was left";
  EXPECT_EQ(next(counter(0, "gpu1"), 0)->value, 0);
  EXPECT_FALSE(next(throttled, 9)) << "time between two stages slowed neither down";
  growth = after(true);
  EXPECT_EQ(next(replays, 3)->value, 0) << "reset meanwhile: nobody knows when it counted these";
  EXPECT_EQ(next(replays, 5)->value, 2);
  growth = after(false);
  EXPECT_FALSE(next(counter(0), 8)) << "without the log's position, its lines may be old";
}

/// However errors come: the last total is their sum, so a limit on it depends on nothing else.
TEST(Totals, OfAnySeriesIsItsSum) {
  std::mt19937 random(20261124);
  for (int round = 0; round < 200; ++round) {
    Growth growth;
    Totals totals;
    double value = std::uniform_int_distribution<>(0, 1000)(random), sum = 0, total = 0;
    (void)totals.add({*growth.since({reading::kTemperature, "degC", "gpu0", 50, "", {}})});
    (void)growth.since(counter(value));
    const int samples = std::uniform_int_distribution<>(1, 120)(random);
    for (int i = 0; i < samples; ++i) {
      const int kind = std::uniform_int_distribution<>(0, 9)(random);
      const int errors = kind < 4 ? 0 : std::uniform_int_distribution<>(0, 20)(random);
      if (kind == 9 && errors < value) value = 0;  // a reset that shows; what the counter holds then is new
      value += errors;
      sum += errors;
      // The words of a counter change with it, and must not divide its total.
      const auto grown = growth.since(counter(value, "gpu0", "link 0: " + std::to_string(value)));
      ASSERT_TRUE(grown);
      const Reading last = totals.add({*grown}).front();
      EXPECT_GE(last.value, total) << "a total never falls";
      EXPECT_EQ(last.text.empty(), last.value == 0) << "it keeps the words of its latest growth";
      total = last.value;
    }
    EXPECT_EQ(total, sum);
  }
}

TEST(Totals, LeaveStatesAndRatesAsTheyAre) {
  Totals totals;
  const Reading state{reading::kTemperature, "degC", "gpu0", 55, "", {}};
  const Reading rate{"pcie_replays_per_minute", "count", "gpu0", 3, "", {}};
  for (int i = 0; i < 2; ++i)
    for (const Reading& one : {state, rate}) EXPECT_EQ(totals.add({one}).front().value, one.value);
}

TEST(Growth, OldWordsAreNotRepeated) {
  Growth growth;
  (void)growth.since(counter(1, "gpu0", "XID 79"));
  EXPECT_EQ(growth.since(counter(1, "gpu0", "XID 79"))->text, "");
  EXPECT_EQ(growth.since(counter(2, "gpu0", "XID 48"))->text, "XID 48");
}

TEST(Growth, AStatePassesAsItIs) {
  Growth growth;
  EXPECT_EQ(growth.since({reading::kTemperature, "degC", "gpu0", 55, "", {}})->value, 55);
}

}  // namespace
}  // namespace muster::env
