// SPDX-License-Identifier: Apache-2.0
// A sample of the forged runs on Slurm that `./dev bench attack forgery` makes.
#include "tests/slurm/forged_run.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(ForgedRun, DrainsAcceptsAndSparesNobodyAndIsNamed) {
  const testing::ForgedRuns runs;
  for (uint64_t seed = 0; seed < 4 * testing::ForgedRuns::kinds(); ++seed) {
    const auto trial = runs.forge(seed);
    EXPECT_EQ(trial.problem, "") << "seed " << seed << ": " << trial.kind;
  }
}

TEST(ForgedRun, AnHonestOneIsJudgedAsItIs) {
  EXPECT_EQ(testing::ForgedRuns().honest(), "");
}

}  // namespace
}  // namespace muster
