// SPDX-License-Identifier: Apache-2.0
// Time stamps and the machine's clocks.
#include "runner/core/clock.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runner/core/build_info.h"

namespace muster {
namespace {

TEST(FormatUtc, IsIso8601) {
  EXPECT_EQ(formatUtc(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(formatUtc(1795230626.9), "2026-11-21T03:10:26Z");
  EXPECT_EQ(formatUtc(253402300799.0), "9999-12-31T23:59:59Z");
}

TEST(FormatUtc, SurvivesADamagedRecord) {
  for (const double bad : {-1.0, 1e18, 1e300, std::nan(""), std::numeric_limits<double>::infinity()})
    EXPECT_EQ(formatUtc(bad), "unknown time");
}

TEST(SystemClock, GoesForwardAndKnowsTheDate) {
  const double before = systemClock().now();
  EXPECT_GE(systemClock().now(), before);
  EXPECT_GT(systemClock().wallUnix(), 1.7e9);
}

TEST(BuildInfo, NamesVersionAndBuild) {
  EXPECT_EQ(std::string(buildId()).find(std::string(toolVersion()) + "+"), 0u);
}

}  // namespace
}  // namespace muster
