// SPDX-License-Identifier: Apache-2.0
// What kernels do with one element: bf16, f16, GELU, optimizers against the host's loops.
#include "kernels/cuda/dnn/device/elements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/host/nn/loops/loops.h"

namespace muster::cuda {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Bf16, RoundsToTheNearestTiesToEven) {
  EXPECT_EQ(toBf16(1.0f).bits, 0x3F80);
  EXPECT_EQ(toBf16(1.0f + 0x1p-8f).bits, 0x3F80);             // half way, even below
  EXPECT_EQ(toBf16(1.0f + 0x1p-8f + 0x1p-20f).bits, 0x3F81);  // just above half
  EXPECT_EQ(toBf16(1.0f + 3 * 0x1p-8f).bits, 0x3F82);         // half way, even above
  EXPECT_EQ(toBf16(-0.0f).bits, 0x8000);
  EXPECT_EQ(toBf16(std::numeric_limits<float>::max()).bits, 0x7F80);  // beyond the largest: infinity
  EXPECT_EQ(toBf16(kInfinity).bits, 0x7F80);
  EXPECT_EQ(toBf16(-kInfinity).bits, 0xFF80);
}

TEST(Bf16, KeepsNan) {
  for (uint32_t bits : {0x7F800001u, 0xFFFFFFFFu, 0x7FC00000u, 0x7FFFFFFFu})
    EXPECT_TRUE(std::isnan(toFloat(toBf16(floatOf(bits))))) << bits;
}

TEST(Bf16, GoesThereAndBackForEveryValue) {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const float value = toFloat(Bf16{static_cast<uint16_t>(bits)});
    if (std::isnan(value)) continue;
    ASSERT_EQ(toBf16(value).bits, bits);
  }
}

TEST(F16, GoesThereAndBackForEveryValue) {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const float value = toFloat(F16{static_cast<uint16_t>(bits)});
    if (std::isnan(value)) continue;
    ASSERT_EQ(toF16(value).bits, bits);
  }
  EXPECT_EQ(toF16(65504.0f).bits, 0x7BFF);
  EXPECT_EQ(toF16(65520.0f).bits, 0x7C00);  // half way beyond the largest: infinity
  EXPECT_TRUE(std::isnan(toFloat(toF16(NAN))));
}

TEST(Relu, KeepsNan) {
  EXPECT_EQ(reluOf(-1.0f), 0.0f);
  EXPECT_EQ(reluOf(2.0f), 2.0f);
  EXPECT_TRUE(std::isnan(reluOf(NAN)));
  EXPECT_EQ(reluGradient(0.0f, 3.0f), 0.0f);
  EXPECT_EQ(reluGradient(1.0f, 3.0f), 3.0f);
  EXPECT_TRUE(std::isnan(reluGradient(1.0f, NAN)));
}

TEST(Gelu, IsTheExactOneAndItsDerivative) {
  for (double x = -9; x <= 9; x += 0.01) {
    const double below = 0.5 * std::erfc(-x / std::sqrt(2.0));
    const double density = std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
    ASSERT_NEAR(geluOf(static_cast<float>(x)), x * below, 3e-7 * (1 + std::abs(x))) << x;
    ASSERT_NEAR(geluSlope(static_cast<float>(x)), below + x * density, 1e-6) << x;
  }
  EXPECT_TRUE(std::isnan(geluOf(NAN)));
  EXPECT_TRUE(std::isnan(geluSlope(NAN)));
}

/// Parameters, gradients and moments of one optimizer's run.
struct Optimizer : ::testing::Test {
  Optimizer() {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (auto* values : {&p, &g, &m, &v})
      for (float& value : *values) value = normal(random);
    for (float& value : v) value *= value;
  }
  static void expectNear(const std::vector<float>& a, const std::vector<float>& b) {
    for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-6f * (1 + std::abs(a[i]))) << i;
  }
  static constexpr size_t kCount = 1001;
  std::vector<float> p = std::vector<float>(kCount), g = p, m = p, v = p;
};

TEST_F(Optimizer, SgdIsTheHosts) {
  for (bool first : {true, false}) {
    std::vector<float> wantedP = p, wantedM = m;
    host::loops(host::Element::kF32)
        .sgd({0.1f, 0.9f, 0.01f, 0.5f}, wantedP.data(), g.data(), wantedM.data(), kCount, first);
    const StepScalars scalars{0.1f, 0.5f, first ? 0.0f : 0.9f, 1, 1};
    for (size_t i = 0; i < kCount; ++i) sgdElement(scalars, 0.01f, g[i], p[i], m[i]);
    expectNear(p, wantedP);
    expectNear(m, wantedM);
  }
}

TEST_F(Optimizer, AdamIsTheHosts) {
  for (int step = 1; step <= 3; ++step) {
    const float correction1 = 1 - std::pow(0.9f, static_cast<float>(step));
    const float correction2 = 1 - std::pow(0.999f, static_cast<float>(step));
    std::vector<float> wantedP = p, wantedM = m, wantedV = v;
    host::loops(host::Element::kF32)
        .adam({1e-3f, 0.9f, 0.999f, 1e-8f, 0.1f, 0.25f, correction1, correction2}, wantedP.data(), g.data(),
              wantedM.data(), wantedV.data(), kCount);
    const StepScalars scalars{1e-3f, 0.25f, 0, correction1, correction2};
    for (size_t i = 0; i < kCount; ++i)
      adamElement(scalars, {0.9f, 0.999f, 1e-8f}, 0.1f, g[i], {p[i], m[i], v[i]});
    expectNear(p, wantedP);
    expectNear(m, wantedM);
    expectNear(v, wantedV);
  }
}

/// Padding of parameters is zero and must stay so, or it would leak into products.
TEST(Optimizers, LeavePaddingZero) {
  float p = 0, m = 0, v = 0;
  sgdElement({0.1f, 1, 0.9f, 1, 1}, 0.01f, 0, p, m);
  EXPECT_EQ(p, 0.0f);
  adamElement({0.1f, 1, 0, 0.1f, 0.001f}, {0.9f, 0.999f, 1e-8f}, 0.01f, 0, {p, m, v});
  EXPECT_EQ(p, 0.0f);
}

}  // namespace
}  // namespace muster::cuda
