// SPDX-License-Identifier: Apache-2.0
// Narrow floating-point formats: every code there and back, ties, limits; f16 against the compiler's own
// type.
#include "kernels/spec/narrow_floats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernels/host/normal.h"
#include "kernels/spec/pattern.h"

namespace muster {
namespace {

class EveryFormat : public ::testing::TestWithParam<FloatFormat> {};

INSTANTIATE_TEST_SUITE_P(NarrowFloats, EveryFormat,
                         ::testing::Values(kF16Format, kE4m3Format, kE5m2Format, kE2m1Format));

TEST_P(EveryFormat, GivesEachCodeBack) {
  const FloatFormat format = GetParam();
  const uint32_t sign = 1u << (format.exponent + format.mantissa);
  for (uint32_t code = 0; code <= format.largest; ++code) {
    EXPECT_EQ(encodeFloat(static_cast<float>(decodeFloat(code, format)), format), code);
    EXPECT_EQ(encodeFloat(static_cast<float>(decodeFloat(code | sign, format)), format), code | sign);
  }
}

TEST_P(EveryFormat, RoundsToTheNearestAndTiesToEven) {
  const FloatFormat format = GetParam();
  for (uint32_t code = 0; code < format.largest; ++code) {
    const double high = decodeFloat(code + 1, format);
    const auto middle = static_cast<float>((decodeFloat(code, format) + high) / 2);
    EXPECT_EQ(encodeFloat(middle, format), code + (code & 1u)) << code;
    EXPECT_EQ(encodeFloat(std::nextafter(middle, 0.0f), format), code) << code;
    EXPECT_EQ(encodeFloat(std::nextafter(middle, 1e9f), format), code + 1) << code;
  }
}

TEST(NarrowFloats, HaveThePublishedLimits) {
  EXPECT_EQ(decodeFloat(kF16Format.largest, kF16Format), 65504);
  EXPECT_EQ(decodeFloat(kE4m3Format.largest, kE4m3Format), 448);
  EXPECT_EQ(decodeFloat(kE5m2Format.largest, kE5m2Format), 57344);
  EXPECT_EQ(decodeFloat(kE2m1Format.largest, kE2m1Format), 6);
  EXPECT_EQ(decodeFloat(1, kE4m3Format), std::ldexp(1, -9));
  EXPECT_EQ(decodeFloat(0x9, kE2m1Format), -0.5);
  EXPECT_TRUE(std::isinf(decodeFloat(0x7c00, kF16Format)));
  EXPECT_TRUE(std::isinf(decodeFloat(0xfc, kE5m2Format)));
  EXPECT_TRUE(std::isnan(decodeFloat(0xff, kE4m3Format)));
  EXPECT_TRUE(std::isnan(decodeFloat(0x7fff, kF16Format)));
}

TEST(NarrowFloats, AgreeWithTheCompilersHalf) {
  for (uint32_t code = 0; code < 0x10000; ++code) {
    const auto bits = static_cast<uint16_t>(code);
    host::Half half;
    std::memcpy(&half, &bits, sizeof half);
    const auto wide = static_cast<double>(half);
    if (std::isnan(wide)) continue;
    EXPECT_EQ(decodeFloat(code, kF16Format), wide);
  }
}

TEST(NarrowFloats, RoundAnyFloatAsTheCompilersHalfDoes) {
  for (uint64_t i = 0; i < 200000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(scatter(i)));
    if (std::isnan(value)) continue;
    ASSERT_EQ(encodeFloat(value, kF16Format), std::bit_cast<uint16_t>(static_cast<host::Half>(value)))
        << value;
  }
}

TEST(NarrowFloats, SaturateOrOverflowAndKeepNan) {
  EXPECT_EQ(encodeFloat(1e9f, kE4m3Format), 0x7eu);
  EXPECT_EQ(encodeFloat(-1e9f, kE5m2Format), 0xfbu);
  EXPECT_EQ(encodeFloat(100.0f, kE2m1Format), 0x7u);
  EXPECT_EQ(encodeFloat(65520.0f, kF16Format), 0x7c00u);  // half way to the next power of two
  EXPECT_EQ(encodeFloat(NAN, kE4m3Format), 0x7fu);
  EXPECT_GT(encodeFloat(NAN, kE5m2Format), 0x7cu);
}

}  // namespace
}  // namespace muster
