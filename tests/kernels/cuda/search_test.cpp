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
Error failed() {
  return {ErrorCode::kInternal, "CUBLAS_STATUS_EXECUTION_FAILED", ""};
}
Status goesOn() {
  return {};
}
Status isGone() {
  return Error{ErrorCode::kIo, "the GPU fell off", ""};
}

TEST(Search, FindsTheFastest) {
  const std::vector<double> seconds = {3, 1, 2, 0.5, 4, 5, 6, 7, 8, 9};
  auto found = fastest(
      seconds.size(), [&](size_t i, int runs) { return Result<double>(seconds[i] * runs); }, goesOn);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, 3u);
}

TEST(Search, LeavesOutWhatCannotRun) {
  auto found = fastest(
      3, [](size_t i, int runs) { return i == 1 ? Result<double>(2.0 * runs) : cannot(); }, goesOn);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, 1u);
}

TEST(Search, LetsFinalistsTakeTurnsAndCountsTheirBestRound) {
  // Candidate 0 looks fast at first only: a burst before the clock settles.
  std::map<size_t, int> asked;
  auto found = fastest(
      2,
      [&](size_t i, int runs) {
        const bool first = asked[i]++ == 0;
        return Result<double>((i == 0 && first ? 0.1 : i == 0 ? 2.0 : 1.0) * runs);
      },
      goesOn);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, 1u);
  EXPECT_EQ(asked[0], asked[1]);
  EXPECT_GT(asked[0], 2);
}

TEST(Search, SaysWhyNobodyCanRun) {
  auto found = fastest(
      2, [](size_t, int) { return Result<double>(cannot()); }, goesOn);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().message, "no such tile");
  EXPECT_FALSE(fastest(
                   0, [](size_t, int) { return Result<double>(1.0); }, goesOn)
                   .ok());
}

/// Whatever its library calls the failure.
TEST(Search, LeavesOutWhatFailsAsLongAsTheDeviceGoesOn) {
  const auto found = fastest(
      3, [](size_t i, int runs) { return i == 1 ? Result<double>(2.0 * runs) : failed(); }, goesOn);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, 1u);
}

TEST(Search, LeavesOutAFinalistThatFails) {
  std::map<size_t, int> asked;
  const auto seconds = [&](size_t i, int runs) {
    return i == 0 && asked[i]++ > 0 ? Result<double>(failed()) : Result<double>((1.0 + i) * runs);
  };
  const auto found = fastest(3, seconds, goesOn);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, 1u);
}

/// A skip would hide it.
TEST(Search, IsAFailureWhereNotAllAreUnsupported) {
  const auto found = fastest(
      3, [](size_t i, int) { return Result<double>(i == 1 ? failed() : cannot()); }, goesOn);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, ErrorCode::kInternal);
}

TEST(Search, EndsWhereTheDeviceDoes) {
  size_t asked = 0;
  const auto seconds = [&](size_t, int) { return ++asked, Result<double>(failed()); };
  const auto found = fastest(3, seconds, isGone);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().message, "the GPU fell off");
  EXPECT_EQ(asked, 1u);
}

}  // namespace
}  // namespace muster::cuda
