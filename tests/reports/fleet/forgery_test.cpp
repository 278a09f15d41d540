// SPDX-License-Identifier: Apache-2.0
// A sample of the fleets that `./dev bench attack forgery` makes: none that is forged is accepted, none that
// is honest is blamed.
#include "tests/reports/fleet/forgery.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(Forgery, IsNeverAcceptedAndAlwaysNamed) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const testing::MadeFleet made = testing::forgedFleet(seed);
    EXPECT_EQ(testing::wrongVerdict(made), "") << "seed " << seed << ": " << made.kind;
  }
}

TEST(Forgery, IsNotSeenInHonestFleets) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    const testing::MadeFleet made = testing::honestFleet(seed);
    EXPECT_EQ(testing::wrongVerdict(made), "") << "seed " << seed << ": " << made.kind;
  }
}

}  // namespace
}  // namespace muster
