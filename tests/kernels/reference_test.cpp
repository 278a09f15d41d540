// SPDX-License-Identifier: Apache-2.0
// The error model of matrix products: its bound, narrow results, integers, NaN.
#include "kernels/checks/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace muster {
namespace {

TEST(ErrorModel, GrowsWithTheSquareRootOfK) {
  const ErrorModel small(Dtype::kF32, Dtype::kF32, 1024);
  const ErrorModel large(Dtype::kF32, Dtype::kF32, 4096);
  EXPECT_DOUBLE_EQ(large.bound(), 2 * small.bound());
  EXPECT_DOUBLE_EQ(small.bound(), ErrorModel::kSafety * 32 * std::ldexp(1.0, -24));
}

TEST(ErrorModel, MeasuresTheErrorAsAShareOfATypicalElement) {
  const ErrorModel model(Dtype::kF32, Dtype::kF32, 10000);
  EXPECT_NEAR(model.deviation(101, 100), 0.01, 1e-12);
}

TEST(ErrorModel, ForgivesTheRoundingOfANarrowResult) {
  const ErrorModel model(Dtype::kF32, Dtype::kBf16, 1024);
  EXPECT_EQ(model.deviation(1.00390625L, 1.0L), 0);  // half a unit in the last place of bf16
  EXPECT_GT(model.deviation(1.0078125L, 1.0L), model.bound());
}

TEST(ErrorModel, LetsNothingPassForIntegers) {
  const ErrorModel model(Dtype::kI8, Dtype::kI8, 4096);
  EXPECT_EQ(model.bound(), 0);
  EXPECT_GT(model.deviation(100001, 100000), model.bound());
}

TEST(ReferenceCheck, CountsNanAndInfinityAsWrong) {
  ReferenceCheck check(ErrorModel(Dtype::kF32, Dtype::kF32, 64));
  check.add(0, 0, std::nan(""), 1);
  check.add(0, 1, std::numeric_limits<double>::infinity(), 1);
  check.add(0, 2, 1, std::nan(""));
  check.add(0, 3, 1, 1);
  EXPECT_EQ(check.result().checked, 4u);
  EXPECT_EQ(check.result().wrong, 3u);
}

TEST(ReferenceCheck, NamesTheWorstElement) {
  ReferenceCheck check(ErrorModel(Dtype::kF32, Dtype::kF32, 64));
  check.add(1, 2, 1.0L, 1.0L);
  check.add(3, 4, 9.0L, 1.0L);
  check.add(5, 6, 2.0L, 1.0L);
  EXPECT_EQ(check.result().row, 3);
  EXPECT_EQ(check.result().column, 4);
  EXPECT_EQ(check.result().wrong, 2u);
}

}  // namespace
}  // namespace muster
