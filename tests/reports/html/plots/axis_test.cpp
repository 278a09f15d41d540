// SPDX-License-Identifier: Apache-2.0
// Axes: units and round ticks.
#include "reports/html/plots/axis.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace muster {
namespace {

TEST(Axis, ChoosesTheUnitPeopleUse) {
  EXPECT_EQ(displayUnit(7.1e14, "FLOP/s").suffix, "TFLOP/s");
  EXPECT_DOUBLE_EQ(7.1e14 * displayUnit(7.1e14, "FLOP/s").factor, 710);
  EXPECT_EQ(displayUnit(3.2e9, "B/s").suffix, "GB/s");
  EXPECT_DOUBLE_EQ(8589934592.0 * displayUnit(8589934592.0, "B").factor, 8);
  EXPECT_EQ(displayUnit(0.03, "ratio").suffix, "%");
  EXPECT_EQ(displayUnit(90, "s").suffix, "s");
  EXPECT_EQ(displayUnit(7200, "s").suffix, "h");
  EXPECT_EQ(displayUnit(0, "FLOP/s").factor, 1);
  EXPECT_EQ(displayUnit(std::numeric_limits<double>::quiet_NaN(), "B/s").factor, 1);
  EXPECT_EQ(displayUnit(12, "count").suffix, "");
}

TEST(Axis, MakesRoundTicksInsideTheRange) {
  for (const auto& [low, high] :
       {std::pair{0.0, 1.0}, {0.0, 733.0}, {-3.0, 5.0}, {1.9e9, 2.1e9}, {0.0, 1e-9}}) {
    const auto ticks = roundTicks(low, high, 5);
    ASSERT_GE(ticks.size(), 2u) << low << " " << high;
    EXPECT_LE(ticks.size(), 12u);
    EXPECT_GE(ticks.front(), low - 1e-12);
    EXPECT_LE(ticks.back(), high * (1 + 1e-9));
  }
}

TEST(Axis, SurvivesRangesThatAreNone) {
  EXPECT_EQ(roundTicks(5, 5, 4).size(), 1u);
  EXPECT_EQ(roundTicks(5, 1, 4).size(), 1u);
  EXPECT_EQ(roundTicks(0, std::numeric_limits<double>::quiet_NaN(), 4).size(), 1u);
}

/// Beyond 2^53 a number and the next whole one may be the same double.
TEST(Axis, EndsWhereStepsAreSmallerThanTheNumbersCanTell) {
  for (const double low : {1e20, -1e20, 9007199254740992.0, 1e299})
    for (const double spread : {0.0, 1.0, 3.0, 16384.0, 49152.0, 1e9}) {
      const auto ticks = roundTicks(low, low + spread, 5);
      EXPECT_GE(ticks.size(), 1u) << low << " " << spread;
      EXPECT_LE(ticks.size(), 12u) << low << " " << spread;
    }
  EXPECT_LE(roundTicks(0, std::numeric_limits<double>::denorm_min(), 5).size(), 12u);
  EXPECT_GE(roundTicks(1.7e9, 1.7e9 + 100, 5).size(), 4u) << "seconds since 1970";
}

TEST(Axis, MapsBothWays) {
  EXPECT_DOUBLE_EQ((Axis{0, 10, 100, 200, false}.at(5)), 150);
  EXPECT_DOUBLE_EQ((Axis{1, 100, 0, 200, true}.at(10)), 100);
  EXPECT_DOUBLE_EQ((Axis{3, 3, 7, 9, false}.at(3)), 7);
}

TEST(Axis, WritesNumbersWithTheDigitsTheyNeed) {
  EXPECT_EQ(plainNumber(0), "0");
  EXPECT_EQ(plainNumber(1200), "1200");
  EXPECT_EQ(plainNumber(0.25), "0.25");
  EXPECT_EQ(plainNumber(3), "3");
  EXPECT_EQ(plainNumber(std::numeric_limits<double>::infinity()), "");
}

}  // namespace
}  // namespace muster
