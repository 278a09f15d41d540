// SPDX-License-Identifier: Apache-2.0
// Result, Status and their macros.
#include "runner/core/result.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return Error{ErrorCode::kUsage, "odd", "here"};
  return n / 2;
}

Result<int> quarter(int n) {
  MUSTER_TRY(const int once, half(n));
  MUSTER_TRY(const int twice, half(once));
  return twice;
}

Status needEven(int n) {
  MUSTER_CHECK_OK(half(n));
  return {};
}

TEST(Result, CarriesTheValueOrTheError) {
  EXPECT_EQ(*quarter(8), 2);
  ASSERT_FALSE(quarter(6).ok());
  EXPECT_EQ(quarter(6).error().message, "odd");
  EXPECT_EQ(quarter(6).error().code, ErrorCode::kUsage);
}

TEST(Result, ContextIsPutBeforeTheMessage) {
  const auto failed = half(3).context("loading plan").context("starting");
  EXPECT_EQ(failed.error().text(), "here: starting: loading plan: odd");
  EXPECT_EQ(*half(4).context("loading plan"), 2);
}

TEST(Status, IsOkOrTheErrorOfWhatItChecked) {
  EXPECT_TRUE(needEven(2).ok());
  EXPECT_EQ(needEven(3).error().message, "odd");
  EXPECT_EQ(needEven(3).context("x").error().message, "x: odd");
}

}  // namespace
}  // namespace muster
