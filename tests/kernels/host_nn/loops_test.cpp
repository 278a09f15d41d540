// SPDX-License-Identifier: Apache-2.0
// The loops of every instruction set that this processor has, against plain f64 and against each other.
#include "kernels/host/nn/loops/loops.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace muster::host {
namespace {

std::vector<float> normal(size_t count, unsigned seed, float sigma = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> distribution(0, sigma);
  std::vector<float> values(count);
  for (float& value : values) value = distribution(random);
  return values;
}

void expectNear(const std::vector<float>& found, const std::vector<float>& wanted, float tolerance) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], wanted[i], tolerance) << "element " << i;
}

/// Runs a test body with each table.
class EachLoops : public ::testing::TestWithParam<const Loops*> {};
INSTANTIATE_TEST_SUITE_P(Sets, EachLoops, ::testing::ValuesIn(usableLoops(Element::kF32)),
                         [](const auto& info) { return info.param->name; });

TEST_P(EachLoops, GeluIsRightEverywhere) {
  for (const size_t count : {1u, 16u, 2001u, 40001u}) {
    std::vector<float> x(count);
    for (size_t i = 0; i < count; ++i)
      x[i] = count == 1 ? 0.7f : -12.0f + 24.0f * static_cast<float>(i) / static_cast<float>(count - 1);
    std::vector<float> y(count);
    std::vector<float> dy(count, 2.0f);
    GetParam()->geluForward(x.data(), y.data(), static_cast<int64_t>(count));
    GetParam()->geluBackward(x.data(), dy.data(), static_cast<int64_t>(count));
    for (size_t i = 0; i < count; ++i) {
      const double v = x[i];
      const double below = 0.5 * std::erfc(-v / std::sqrt(2.0));
      const double density = std::exp(-v * v / 2) / std::sqrt(2 * M_PI);
      ASSERT_NEAR(y[i], v * below, 4e-7 * std::max(1.0, std::abs(v * below))) << v;
      ASSERT_NEAR(dy[i], 2 * (below + v * density), 2e-6) << v;
    }
  }
}

TEST_P(EachLoops, GeluKeepsNan) {
  std::vector<float> x(19, 1.0f);
  x[3] = x[18] = NAN;
  std::vector<float> y(19);
  std::vector<float> dy(19, 1.0f);
  GetParam()->geluForward(x.data(), y.data(), 19);
  GetParam()->geluBackward(x.data(), dy.data(), 19);
  for (size_t i = 0; i < 19; ++i) {
    EXPECT_EQ(std::isnan(y[i]), i == 3 || i == 18) << i;
    EXPECT_EQ(std::isnan(dy[i]), i == 3 || i == 18) << i;
  }
}

TEST_P(EachLoops, ReluKeepsNan) {
  std::vector<float> y = {-1, 2, NAN, -0.0f, 3, -5, NAN};
  std::vector<float> dy = {1, 2, 3, 4, 5, 6, 7};
  GetParam()->reluForward(y.data(), 7);
  EXPECT_EQ(y[0], 0);
  EXPECT_EQ(y[1], 2);
  EXPECT_TRUE(std::isnan(y[2]));
  EXPECT_TRUE(std::isnan(y[6]));
  GetParam()->reluBackward(y.data(), dy.data(), 7);
  EXPECT_EQ(dy, (std::vector<float>{0, 2, 3, 0, 5, 0, 7}));
}

/// Logits from tiny to large: no overflow, and the exact answer.
TEST_P(EachLoops, CrossEntropyIsRightForLargeLogits) {
  constexpr int64_t kRows = 3;
  constexpr int64_t kClasses = 37;
  std::vector<float> logits = normal(kRows * kClasses, 5, 3);
  for (int64_t i = 0; i < kClasses; ++i) {
    logits[static_cast<size_t>(kClasses + i)] += 3e4f;
    logits[static_cast<size_t>(2 * kClasses + i)] *= 1e-3f;
  }
  const std::vector<int32_t> labels = {4, 36, 0};
  std::vector<float> gradient(logits.size());
  std::vector<double> losses(kRows);
  std::vector<int32_t> right(kRows);
  GetParam()->crossEntropy(
      {{kRows, kClasses}, logits.data(), labels.data(), gradient.data(), losses.data(), right.data()});
  for (size_t row = 0; row < kRows; ++row) {
    const float* x = logits.data() + row * kClasses;
    const double top = *std::max_element(x, x + kClasses);
    double sum = 0;
    for (int64_t i = 0; i < kClasses; ++i) sum += std::exp(static_cast<double>(x[i]) - top);
    const auto label = static_cast<size_t>(labels[row]);
    EXPECT_NEAR(losses[row], std::log(sum) + top - static_cast<double>(x[label]), 1e-5);
    for (size_t i = 0; i < kClasses; ++i)
      EXPECT_NEAR(gradient[row * kClasses + i],
                  (std::exp(static_cast<double>(x[i]) - top) / sum - (i == label ? 1 : 0)) / kRows, 1e-6);
  }
}

/// A tensor whose mean is far from zero, where the sum of squares would cancel.
TEST_P(EachLoops, BatchStatisticsDoNotCancel) {
  for (const int lanes : {8, 16}) {
    const ImageBlocks shape{3, 2, 33, lanes};
    std::vector<float> x = normal(static_cast<size_t>(shape.elements()), 7);
    for (float& value : x) value = 1000 + 0.1f * value;
    std::vector<float> y(x.size());
    const auto channels = static_cast<size_t>(2 * lanes);
    std::vector<float> one(channels, 1), zero(channels, 0), mean(channels), inverse(channels),
        running(channels), variance(channels);
    std::vector<double> scratch(channels * 2 * 3);
    BatchNormData data;
    data.shape = shape;
    data.x = x.data();
    data.y = y.data();
    data.scale = one.data();
    data.shift = zero.data();
    data.mean = mean.data();
    data.inverse = inverse.data();
    data.runningMean = running.data();
    data.runningVariance = variance.data();
    data.scratch = scratch.data();
    data.epsilon = 1e-5;
    data.momentum = 1;
    GetParam()->batchNormTrain(data);
    for (size_t channel = 0; channel < channels; ++channel) {
      double sum = 0, squares = 0;
      const auto each = [&](auto body) {
        for (size_t image = 0; image < 3; ++image)
          for (size_t pixel = 0; pixel < 33; ++pixel) {
            const size_t block = channel / static_cast<size_t>(lanes);
            body(static_cast<double>(x[((image * 2 + block) * 33 + pixel) * static_cast<size_t>(lanes) +
                                       channel % static_cast<size_t>(lanes)]));
          }
      };
      each([&](double v) { sum += v / 99; });
      each([&](double v) { squares += (v - sum) * (v - sum) / 99; });
      EXPECT_NEAR(mean[channel], sum, 1e-4);
      EXPECT_NEAR(inverse[channel] * std::sqrt(squares + 1e-5), 1, 1e-3);
      EXPECT_NEAR(variance[channel], squares * 99 / 98, 1e-3 * squares);
    }
  }
}

/// Each table gives what the first one gives, whatever the widths.
TEST_P(EachLoops, LayerNormAgreesWithTheOthers) {
  for (const int64_t width : {1, 15, 16, 33, 100}) {
    const Rows shape{7, width};
    const std::vector<float> x = normal(static_cast<size_t>(shape.elements()), 3);
    const std::vector<float> dy = normal(x.size(), 4);
    const std::vector<float> scale = normal(static_cast<size_t>(width), 5);
    const auto run = [&](const Loops& loops) {
      std::vector<float> y(x.size()), dx(x.size(), 0.5f), mean(7), inverse(7),
          sums(2 * static_cast<size_t>(width)),
          scratch(2 * static_cast<size_t>(width) * static_cast<size_t>(omp_get_max_threads()));
      const LayerNormData data{shape,        x.data(),    y.data(),       scale.data(),
                               scale.data(), mean.data(), inverse.data(), 1e-5f};
      loops.layerNormForward(data);
      loops.layerNormBackward(data,
                              {dy.data(), dx.data(), true, sums.data(), sums.data() + width, scratch.data()});
      y.insert(y.end(), dx.begin(), dx.end());
      y.insert(y.end(), sums.begin(), sums.end());
      return y;
    };
    expectNear(run(*GetParam()), run(*usableLoops(Element::kF32).front()), width == 1 ? 1e-2f : 2e-5f);
  }
}

/// Each table of bf16, by way of its two conversions.
class EachBf16Loops : public ::testing::TestWithParam<const Loops*> {};
INSTANTIATE_TEST_SUITE_P(Sets, EachBf16Loops, ::testing::ValuesIn(usableLoops(Element::kBf16)),
                         [](const auto& info) { return info.param->name; });

TEST_P(EachBf16Loops, RoundToNearestEven) {
  const std::vector<std::pair<float, float>> cases = {
      {0x1.02p0f, 0x1.02p0f},      // fits
      {0x1.01p0f, 0x1.00p0f},      // half way: to even, down
      {0x1.03p0f, 0x1.04p0f},      // half way: to even, up
      {0x1.010002p0f, 0x1.02p0f},  // just above half way
      {-0x1.01p0f, -0x1.00p0f},   {-0.0f, -0.0f},         {0x1.ffp127f, INFINITY},
      {-INFINITY, -INFINITY},     {0x1p-133f, 0x1p-133f},
  };
  for (const size_t count : {size_t{1}, cases.size(), size_t{16}, size_t{35}}) {
    std::vector<float> from(count), back(count);
    std::vector<uint16_t> stored(count);
    for (size_t i = 0; i < count; ++i) from[i] = cases[i % cases.size()].first;
    const Rows shape{1, static_cast<int64_t>(count)};
    GetParam()->rowsFromF32(from.data(), stored.data(), shape.width, shape);
    GetParam()->rowsToF32(stored.data(), shape.width, back.data(), shape);
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ(back[i], cases[i % cases.size()].second) << from[i];
      EXPECT_EQ(std::signbit(back[i]), std::signbit(from[i])) << from[i];
    }
  }
}

/// Rounding adds to a number's bits: a NaN of many ones must not carry over into zero.
TEST_P(EachBf16Loops, KeepEveryNan) {
  std::vector<float> from(19);
  for (size_t i = 0; i < from.size(); ++i) {
    const uint32_t bits = i % 2 == 0 ? 0x7f800001u : 0xffffffffu;
    std::memcpy(&from[i], &bits, sizeof bits);
  }
  std::vector<uint16_t> stored(19);
  std::vector<float> back(19);
  GetParam()->rowsFromF32(from.data(), stored.data(), 19, {1, 19});
  GetParam()->rowsToF32(stored.data(), 19, back.data(), {1, 19});
  for (float value : back) EXPECT_TRUE(std::isnan(value));
}

TEST_P(EachLoops, MaxPoolTakesNanAsTheLargest) {
  for (const int lanes : {8, 16}) {
    PoolData pool{{1, 1, 1, lanes}, 2, 2, 1, 1, 2, 2, 0};
    std::vector<float> x = normal(static_cast<size_t>(4 * lanes), 9);
    x[static_cast<size_t>(2 * lanes + 3)] = NAN;
    std::vector<float> y(static_cast<size_t>(lanes));
    std::vector<uint8_t> taken(y.size());
    GetParam()->maxPoolForward(pool, x.data(), y.data(), taken.data());
    for (size_t lane = 0; lane < y.size(); ++lane) {
      if (lane == 3) {
        EXPECT_TRUE(std::isnan(y[lane]));
        EXPECT_EQ(taken[lane], 2);
        continue;
      }
      float best = x[lane];
      for (size_t pixel = 1; pixel < 4; ++pixel) best = std::max(best, x[pixel * y.size() + lane]);
      EXPECT_EQ(y[lane], best);
    }
  }
}

}  // namespace
}  // namespace muster::host
