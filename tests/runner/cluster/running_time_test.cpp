// SPDX-License-Identifier: Apache-2.0
// Which time counts as run by this process.
#include "runner/cluster/running_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace muster::testing {
namespace {

TEST(RunningTime, CountsNoStops) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    struct : Clock {
      [[nodiscard]] double now() const override { return at; }
      [[nodiscard]] double wallUnix() const override { return at; }
      double at = 100;
    } clock;
    RunningTime time(clock, 1);
    double ran = time.now(), longest = 0;
    for (int step = 0; step < 50; ++step) {
      const bool stops = random() % 5 == 0;
      const double gap =
          stops ? 1.5 + static_cast<double>(random() % 100) : static_cast<double>(random() % 100) / 100;
      clock.at += gap;
      ran += stops ? 1 : gap;
      if (stops) longest = std::max(longest, gap);
      EXPECT_NEAR(time.now(), ran, 1e-6);
    }
    EXPECT_NEAR(time.longestStop().seconds, longest, 1e-6);
    time.forget();
    EXPECT_EQ(time.longestStop().seconds, 0);
  }
}

}  // namespace
}  // namespace muster::testing
