// SPDX-License-Identifier: Apache-2.0
// The search for the fastest algorithm: what it runs, whom it leaves out, what it says when nobody can.
#include "kernels/cuda/blas/search.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace muster::cuda {
namespace {

Error cannot() {
  return {ErrorCode::kUnsupported, "no such tile", ""};
}

TEST(Search, FindsTheFastest) {
  const std::vector<double> seconds = {3, 1, 2, 0.5, 4, 5, 6, 7, 8, 9};
  auto found = fastest(seconds.size(), [&](size_t i, int runs) { return Result<double>(seconds[i] * runs); });
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, 3u);
}

TEST(Search, LeavesOutWhatCannotRun) {
  auto found = fastest(3, [](size_t i, int runs) { return i == 1 ? Result<double>(2.0 * runs) : cannot(); });
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, 1u);
}

TEST(Search, LetsFinalistsTakeTurnsAndCountsTheirBestRound) {
  // Candidate 0 looks fast at first only: a burst before the clock settles.
  std::map<size_t, int> asked;
  auto found = fastest(2, [&](size_t i, int runs) {
    const bool first = asked[i]++ == 0;
    return Result<double>((i == 0 && first ? 0.1 : i == 0 ? 2.0 : 1.0) * runs);
  });
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, 1u);
  EXPECT_EQ(asked[0], asked[1]);
  EXPECT_GT(asked[0], 2);
}

TEST(Search, SaysWhyNobodyCanRun) {
  auto found = fastest(2, [](size_t, int) { return Result<double>(cannot()); });
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().message, "no such tile");
  EXPECT_FALSE(fastest(0, [](size_t, int) { return Result<double>(1.0); }).ok());
}

TEST(Search, EndsAtAnErrorOfTheDevice) {
  auto found = fastest(2, [](size_t i, int) {
    return i == 0 ? Result<double>(1.0) : Result<double>(Error{ErrorCode::kInternal, "the GPU fell off", ""});
  });
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, ErrorCode::kInternal);
}

}  // namespace
}  // namespace muster::cuda
