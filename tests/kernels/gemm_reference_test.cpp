// SPDX-License-Identifier: Apache-2.0
// The reference of matrix products: samples, element types, sums, and the error model of tensor cores.
#include "kernels/checks/gemm_reference.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>

#include "kernels/checks/reference.h"

namespace muster {
namespace {

template <typename T, size_t N>
const std::byte* bytes(const std::array<T, N>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

TEST(GemmReference, LooksAtEachElementOfASmallResult) {
  const GemmSpec spec{3, 5, 7, Dtype::kF32, "default"};
  const std::vector<int64_t> all = sampledElements(spec, 100, 1);
  EXPECT_EQ(std::set<int64_t>(all.begin(), all.end()).size(), 15u);
}

TEST(GemmReference, TakesOtherSamplesForAnotherSeedAndStaysInside) {
  const GemmSpec spec{1000, 1000, 7, Dtype::kF32, "default"};
  const std::vector<int64_t> one = sampledElements(spec, 64, 1);
  EXPECT_EQ(one.size(), 64u);
  EXPECT_NE(one, sampledElements(spec, 64, 2));
  for (int64_t index : one) EXPECT_TRUE(index >= 0 && index < 1000000) << index;
}

TEST(GemmReference, ReadsEveryInputType) {
  EXPECT_EQ(gemmInputAt(bytes(std::array<double, 2>{0, 1.5}), Dtype::kF64, 1), 1.5L);
  EXPECT_EQ(gemmInputAt(bytes(std::array<float, 2>{0, -2}), Dtype::kTf32, 1), -2.0L);
  EXPECT_EQ(gemmInputAt(bytes(std::array<uint16_t, 2>{0, 0x3c00}), Dtype::kF16, 1), 1.0L);
  EXPECT_EQ(gemmInputAt(bytes(std::array<uint16_t, 2>{0, 0x3f80}), Dtype::kBf16, 1), 1.0L);
  EXPECT_EQ(gemmInputAt(bytes(std::array<uint8_t, 2>{0, 0x38}), Dtype::kFp8E4m3, 1), 1.0L);
  EXPECT_EQ(gemmInputAt(bytes(std::array<uint8_t, 2>{0, 0x3c}), Dtype::kFp8E5m2, 1), 1.0L);
  EXPECT_EQ(gemmInputAt(bytes(std::array<int8_t, 2>{0, -7}), Dtype::kI8, 1), -7.0L);
  const std::array<uint8_t, 1> pair = {0x92};  // 1, then -0.5
  EXPECT_EQ(gemmInputAt(bytes(pair), Dtype::kFp4, 0), 1.0L);
  EXPECT_EQ(gemmInputAt(bytes(pair), Dtype::kFp4, 1), -0.5L);
}

TEST(GemmReference, ReadsResultsInTheTypeTheyAreStoredIn) {
  EXPECT_EQ(gemmOutputAt(bytes(std::array<int32_t, 1>{-70000}), Dtype::kI8, 0), -70000.0L);
  EXPECT_EQ(gemmOutputAt(bytes(std::array<uint16_t, 1>{0xbf80}), Dtype::kFp8E4m3, 0), -1.0L);
  EXPECT_EQ(gemmOutputBytes(Dtype::kI8), 4u);
  EXPECT_EQ(gemmOutputBytes(Dtype::kFp4), 2u);
  EXPECT_EQ(gemmOutputBytes(Dtype::kTf32), 4u);
}

TEST(GemmReference, AddsUpAlongRowsAndColumns) {
  const std::array<float, 6> a = {1, 2, 3, 4, 5, 6};     // 2 x 3
  const std::array<float, 6> b = {1, 10, 2, 20, 3, 30};  // 3 x 2
  EXPECT_EQ(dotProduct({bytes(a), Dtype::kF32, 3, 1}, {bytes(b), Dtype::kF32, 1, 2}, 3), 320.0L);
  const std::array<float, 6> transposed = {1, 2, 3, 10, 20, 30};  // the same, 2 x 3
  EXPECT_EQ(dotProduct({bytes(a), Dtype::kF32, 3, 1}, {bytes(transposed), Dtype::kF32, 3, 1}, 3), 320.0L);
}

TEST(GemmReference, CountsTheBytesOfAllFourMatrices) {
  const GemmSpec spec{4, 8, 16, Dtype::kBf16, "default"};
  EXPECT_EQ(gemmOperandBytes(spec), (4 * 16 + 16 * 8) * 2 + 2 * 4 * 8 * 2u);
  const GemmSpec half{4, 8, 16, Dtype::kFp4, "default"};
  EXPECT_EQ(gemmOperandBytes(half), (4 * 16 + 16 * 8) / 2 + 2 * 4 * 8 * 2u);
}

TEST(GemmReference, RefusesDimensionsOutOfBounds) {
  EXPECT_FALSE(checkGemmShape({0, 1, 1, Dtype::kF32, "default"}).ok());
  EXPECT_FALSE(checkGemmShape({1, 1 << 21, 1, Dtype::kF32, "default"}).ok());
  EXPECT_TRUE(checkGemmShape({1, 1, 1 << 20, Dtype::kF32, "default"}).ok());
}

/// A sum of bf16 products as a tensor core makes it: eight at once, the sum cut off to 24 bits.
double cutOff(double x) {
  const double unit = std::ldexp(1.0, std::ilogb(x) - 23);
  return std::trunc(x / unit) * unit;
}

TEST(ErrorModel, BoundsWhatATensorCoreLosesAndNotMore) {
  const int64_t k = 8192;
  const ErrorModel model(Summation::tensorCore(Dtype::kTf32), Dtype::kF32, k);
  // An element of five sigma, by products that all have the same sign.
  const double part = 5 * std::sqrt(static_cast<double>(k)) / static_cast<double>(k);
  double sum = 0;
  for (int64_t i = 0; i < k; i += 4) sum = cutOff(sum + 4 * part * (1 - 2 * 0x1p-10));
  const auto exact = static_cast<long double>(part) * k;
  EXPECT_LE(model.deviation(sum, exact), model.bound());
  // Yet a single product that is missing is seen.
  EXPECT_GT(model.deviation(sum - 1, exact), model.bound());
}

TEST(ErrorModel, KeepsIntegersAndDoublesOfTensorCoresExactOrRounded) {
  EXPECT_EQ(ErrorModel(Summation::tensorCore(Dtype::kI8), Dtype::kI8, 4096).bound(), 0);
  EXPECT_DOUBLE_EQ(ErrorModel(Summation::tensorCore(Dtype::kF64), Dtype::kI8, 4096).bound(),
                   ErrorModel(Dtype::kF64, Dtype::kF64, 4096).bound());
}

}  // namespace
}  // namespace muster
