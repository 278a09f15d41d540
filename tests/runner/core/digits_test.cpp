// SPDX-License-Identifier: Apache-2.0
#include "runner/core/digits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace muster {
namespace {

TEST(Digits, RoundsToSignificantOnes) {
  EXPECT_EQ(roundedTo(2986557082619.6055, 7), 2.986557e12);
  EXPECT_EQ(roundedTo(0.2140874549184258, 7), 0.2140875);
  EXPECT_EQ(roundedTo(-33.440245171651114, 5), -33.44);
  EXPECT_EQ(roundedTo(5.997953509311316e-07, 7), 5.997954e-07);
  EXPECT_EQ(roundedTo(9999999.96, 7), 1e7);
}

TEST(Digits, LeavesWhatHasNoDigits) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(std::isnan(roundedTo(std::nan(""), 7)));
  EXPECT_EQ(roundedTo(kInfinity, 7), kInfinity);
  EXPECT_EQ(roundedTo(-kInfinity, 7), -kInfinity);
  EXPECT_TRUE(std::signbit(roundedTo(-0.0, 7)));
}

TEST(Digits, KeepsTheEndsOfTheRange) {
  constexpr double kMost = std::numeric_limits<double>::max();
  EXPECT_EQ(roundedTo(kMost, 7), 1.797693e308);
  EXPECT_EQ(roundedTo(kMost, 1), kMost) << "2e308 is no double";
  EXPECT_GT(roundedTo(std::numeric_limits<double>::denorm_min(), 7), 0);
}

TEST(Digits, IsTheSameWhenDoneTwice) {
  for (const double value : {1.0 / 3, 7.1234567e14, 1e-300 / 7, 123456789.0})
    EXPECT_EQ(roundedTo(roundedTo(value, 7), 7), roundedTo(value, 7));
}

TEST(Digits, LeavesWhatIsCounted) {
  for (const char* unit : {"count", "B", "bool"}) {
    std::vector<double> samples = {85520809984, 1};
    roundSamples(samples, unit, 7);
    EXPECT_EQ(samples, (std::vector<double>{85520809984, 1})) << unit;
  }
  std::vector<double> samples = {85520809984};
  roundSamples(samples, "B/s", 7);
  EXPECT_EQ(samples, std::vector<double>{85520810000});
}

}  // namespace
}  // namespace muster
