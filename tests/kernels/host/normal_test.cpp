// SPDX-License-Identifier: Apache-2.0
// Normally distributed fills: moments, independence of ranges, rounding.
#include "kernels/host/normal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace muster::host {
namespace {

template <typename T>
std::vector<T> filled(Dtype dtype, uint64_t seed, uint64_t first, uint64_t count) {
  std::vector<T> data(count);
  fillNormal(data.data(), dtype, seed, first, count);
  return data;
}

TEST(FillNormal, HasTheMomentsOfANormalDistribution) {
  const auto data = filled<float>(Dtype::kF32, 42, 0, 400000);
  double sum = 0, squares = 0, fourth = 0;
  for (float x : data) {
    sum += x;
    squares += static_cast<double>(x) * x;
    fourth += std::pow(static_cast<double>(x), 4);
  }
  const auto n = static_cast<double>(data.size());
  EXPECT_NEAR(sum / n, 0, 0.01);
  EXPECT_NEAR(squares / n, 1, 0.01);
  EXPECT_NEAR(fourth / n, 3, 0.1);
}

TEST(FillNormal, DoesNotDependOnWhereARangeBegins) {
  for (Dtype dtype : {Dtype::kF64, Dtype::kF32, Dtype::kBf16, Dtype::kI8}) {
    const size_t size = dtypeBits(dtype) / 8;
    std::vector<std::byte> whole(1001 * size), parts(1001 * size);
    fillNormal(whole.data(), dtype, 7, 0, 1001);
    fillNormal(parts.data(), dtype, 7, 0, 512);
    fillNormal(parts.data() + 512 * size, dtype, 7, 512, 489);
    EXPECT_EQ(whole, parts) << dtypeName(dtype);
  }
}

TEST(FillNormal, DiffersBySeed) {
  EXPECT_EQ(filled<double>(Dtype::kF64, 1, 0, 9), filled<double>(Dtype::kF64, 1, 0, 9));
  EXPECT_NE(filled<double>(Dtype::kF64, 1, 0, 9), filled<double>(Dtype::kF64, 2, 0, 9));
}

TEST(FillNormal, GivesFiniteNumbersOnly) {
  for (double x : filled<double>(Dtype::kF64, 3, 0, 100001)) ASSERT_TRUE(std::isfinite(x));
  for (float x : filled<float>(Dtype::kF32, 3, 0, 100001)) ASSERT_TRUE(std::isfinite(x));
}

TEST(FillNormal, WritesTheSameNumbersInEveryFloatType) {
  const auto f32 = filled<float>(Dtype::kF32, 5, 0, 101);
  const auto bf16 = filled<uint16_t>(Dtype::kBf16, 5, 0, 101);
  const auto f16 = filled<Half>(Dtype::kF16, 5, 0, 101);
  for (size_t i = 0; i < f32.size(); ++i) {
    EXPECT_EQ(bf16[i], toBf16(f32[i]));
    EXPECT_EQ(f16[i], static_cast<Half>(f32[i]));
  }
}

TEST(FillNormal, SpreadsIntegersOverTheirRange) {
  const auto data = filled<int8_t>(Dtype::kI8, 5, 0, 100000);
  double squares = 0;
  for (int8_t x : data) {
    ASSERT_GE(x, -127);
    squares += x * x;
  }
  EXPECT_NEAR(std::sqrt(squares / 100000), kI8Sigma, 0.5);
}

TEST(FillNormal, KnowsWhichTypesItLacks) {
  EXPECT_TRUE(canFillNormal(Dtype::kBf16));
  EXPECT_FALSE(canFillNormal(Dtype::kFp8E4m3));
  EXPECT_FALSE(canFillNormal(Dtype::kFp4));
}

TEST(ToBf16, RoundsToNearestTiesToEven) {
  EXPECT_EQ(toBf16(1.0f), 0x3f80);
  EXPECT_EQ(toBf16(1.00390625f), 0x3f80);  // half way: down to even
  EXPECT_EQ(toBf16(1.01171875f), 0x3f82);  // half way: up to even
  EXPECT_EQ(toBf16(1.00390637f), 0x3f81);  // just above half way
  EXPECT_EQ(toBf16(-2.5f), 0xc020);
  EXPECT_EQ(toBf16(std::numeric_limits<float>::max()), 0x7f80);  // rounds to infinity
  EXPECT_EQ(toBf16(std::numeric_limits<float>::infinity()), 0x7f80);
}

TEST(ToBf16, KeepsNanANan) {
  for (uint32_t bits : {0x7f800001u, 0x7fc00000u, 0xffffffffu}) {
    const float back = fromBf16(toBf16(std::bit_cast<float>(bits)));
    EXPECT_TRUE(std::isnan(back)) << std::hex << bits;
  }
}

}  // namespace
}  // namespace muster::host
