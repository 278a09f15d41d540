// SPDX-License-Identifier: Apache-2.0
// Parts of a row put together, in any grouping, against f64.
#include "kernels/cuda/dnn/device/combine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace muster::cuda {
namespace {

constexpr float kInfinite = INFINITY;

std::vector<float> row(size_t count, float mean, float sigma) {
  std::mt19937 random(static_cast<uint32_t>(count));
  std::normal_distribution<float> normal(mean, sigma);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

/// Lanes that each see every `lanes`-th element, put together two by two as a warp does it.
template <typename Part>
Part inLanes(const std::vector<float>& values, size_t lanes) {
  std::vector<Part> parts(lanes);
  for (size_t i = 0; i < values.size(); ++i) parts[i % lanes] = with(parts[i % lanes], values[i]);
  for (size_t distance = lanes / 2; distance > 0; distance /= 2)
    for (size_t lane = 0; lane < distance; ++lane) parts[lane] = combine(parts[lane], parts[lane + distance]);
  return parts[0];
}

TEST(SoftmaxParts, SumAsOneRow) {
  for (size_t count : {1, 2, 31, 32, 33, 1000, 32000}) {
    const std::vector<float> values = row(count, 3, 20);
    const SoftmaxPart part = inLanes<SoftmaxPart>(values, 32);
    double top = -INFINITY, sum = 0;
    for (float value : values) top = std::max(top, static_cast<double>(value));
    for (float value : values) sum += std::exp(static_cast<double>(value) - top);
    EXPECT_EQ(part.top, static_cast<float>(top));
    EXPECT_NEAR(part.sum, sum, 1e-5 * sum) << count;
  }
}

TEST(SoftmaxParts, EmptyOnesChangeNothing) {
  const SoftmaxPart part = with(SoftmaxPart{}, 2.5f);
  EXPECT_EQ(part.top, 2.5f);
  EXPECT_EQ(part.sum, 1.0f);
  EXPECT_EQ(combine(part, SoftmaxPart{}).sum, 1.0f);
  EXPECT_EQ(combine(SoftmaxPart{}, part).sum, 1.0f);
  EXPECT_EQ(combine(SoftmaxPart{}, SoftmaxPart{}).sum, 0.0f);
}

TEST(SoftmaxParts, TakeMinusInfinityForNothing) {
  EXPECT_EQ(with(SoftmaxPart{}, -kInfinite).sum, 0.0f);
  const SoftmaxPart part = with(with(SoftmaxPart{}, -kInfinite), 1.0f);
  EXPECT_EQ(part.top, 1.0f);
  EXPECT_EQ(part.sum, 1.0f);
}

TEST(SoftmaxParts, KeepNan) {
  for (size_t place : {0, 7, 31, 63}) {
    std::vector<float> values = row(64, 0, 1);
    values[place] = NAN;
    const SoftmaxPart part = inLanes<SoftmaxPart>(values, 32);
    EXPECT_TRUE(std::isnan(part.top) && std::isnan(part.sum)) << place;
  }
  EXPECT_TRUE(std::isnan(with(with(SoftmaxPart{}, 1.0f), kInfinite).sum));  // infinity - infinity
}

TEST(Moments, AreThoseOfTheRow) {
  for (const auto& [mean, sigma] :
       {std::pair{0.0f, 1.0f}, std::pair{1000.0f, 0.5f}, std::pair{-3.0f, 100.0f}})
    for (size_t count : {1, 2, 31, 33, 768, 1024, 8191}) {
      const std::vector<float> values = row(count, mean, sigma);
      const Moments found = inLanes<Moments>(values, 32);
      double average = 0, squares = 0;
      for (float value : values) average += static_cast<double>(value) / static_cast<double>(count);
      for (float value : values) squares += std::pow(static_cast<double>(value) - average, 2);
      EXPECT_EQ(found.count, static_cast<float>(count));
      EXPECT_NEAR(found.mean, average, 1e-6 * (std::abs(average) + static_cast<double>(sigma))) << count;
      EXPECT_NEAR(found.squares, squares, 2e-3 * squares + 1e-6 * average * average) << count;
    }
}

TEST(Moments, OfNothingAreEmpty) {
  const Moments none = combine(Moments{}, Moments{});
  EXPECT_EQ(none.count, 0.0f);
  EXPECT_EQ(none.mean, 0.0f);
  const Moments one = combine(Moments{}, with(Moments{}, 4.0f));
  EXPECT_EQ(one.mean, 4.0f);
  EXPECT_EQ(one.squares, 0.0f);
}

TEST(Moments, KeepNan) {
  EXPECT_TRUE(std::isnan(inLanes<Moments>({1, 2, NAN, 4}, 2).mean));
}

}  // namespace
}  // namespace muster::cuda
