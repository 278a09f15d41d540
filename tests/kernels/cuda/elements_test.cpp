// SPDX-License-Identifier: Apache-2.0
// What one thread of a GPU computes, run on the CPU: against the host backend, at sizes that end anywhere and
// at indices past 32 bits.
#include "kernels/cuda/elements.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/host/compare.h"
#include "kernels/host/normal.h"
#include "kernels/interfaces/device.h"

namespace muster::cuda {
namespace {

constexpr uint64_t kSizes[] = {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 4095, 4096, 4104, 10007};

using Bytes = std::vector<std::byte>;

/// Fills as the kernels do: whole units at once, the last one byte by byte.
template <typename Make>
Bytes filled(uint64_t bytes, Make make) {
  Bytes data(bytes + 1, std::byte{0xa5});  // the byte past the end must stay
  for (uint64_t unit = 0; unit < unitsOf(bytes); ++unit)
    storePart(data.data() + unit * kUnitBytes, bytesOfUnit(unit, bytes), make(unit));
  EXPECT_EQ(data.back(), std::byte{0xa5}) << bytes;
  data.pop_back();
  return data;
}

Unit unitAt(const Bytes& data, uint64_t unit, const Unit& rest) {
  return loadPart(data.data() + unit * kUnitBytes, bytesOfUnit(unit, data.size()), rest);
}

template <typename To>
void expectHostsNumbers(Dtype dtype) {
  for (uint64_t bytes : kSizes) {
    const uint64_t size = To::kBits / 8;
    const uint64_t whole = bytes / size * size;
    Bytes expected(whole);
    host::fillNormal(expected.data(), dtype, 42, 0, whole / size);
    const uint64_t key = normalKey(42);
    EXPECT_EQ(filled(whole, [&](uint64_t unit) { return normalUnit<To>(key, unit); }), expected)
        << dtypeName(dtype) << ", " << bytes << " B";
  }
}

TEST(CudaElements, FillWithTheHostsNumbers) {
  expectHostsNumbers<ToF64>(Dtype::kF64);
  expectHostsNumbers<ToF32>(Dtype::kF32);
  expectHostsNumbers<ToF16>(Dtype::kF16);
  expectHostsNumbers<ToBf16>(Dtype::kBf16);
  expectHostsNumbers<ToI8>(Dtype::kI8);
}

TEST(CudaElements, FillPastTheReachOf32Bits) {
  constexpr uint64_t kUnit = (1ull << 34) + 5;
  const uint64_t key = normalKey(3);
  float four[4];
  host::fillNormal(four, Dtype::kF32, 3, kUnit * 4, 4);
  const Unit unit = normalUnit<ToF32>(key, kUnit);
  EXPECT_EQ(std::memcmp(&unit, four, sizeof four), 0);
  EXPECT_EQ(patternUnit(6, kUnit).high, (kUnit * 2 + 1) * 8);
}

TEST(CudaElements, PackTwoE2m1IntoAByteTheEvenOneLow) {
  const uint64_t key = normalKey(9);
  const Unit packed = normalUnit<ToE2m1>(key, 0);
  for (uint64_t pair = 0; pair < 8; ++pair) {
    const FloatValues values = floatValues(normalBits(key, pair));
    EXPECT_EQ(packed.low >> (8 * pair) & 0xf, encodeFloat(values.even, kE2m1Format));
    EXPECT_EQ(packed.low >> (8 * pair + 4) & 0xf, encodeFloat(values.odd, kE2m1Format));
  }
}

TEST(CudaElements, FillNarrowFloatsWithTheRoundedNumbers) {
  const uint64_t key = normalKey(9);
  const Unit e4m3 = normalUnit<ToE4m3>(key, 1);
  const Unit e5m2 = normalUnit<ToE5m2>(key, 1);
  for (uint64_t i = 0; i < 16; ++i) {
    const FloatValues values = floatValues(normalBits(key, 8 + i / 2));
    const float value = i % 2 == 0 ? values.even : values.odd;
    const auto code = [&](const Unit& unit) {
      return (i < 8 ? unit.low : unit.high) >> (8 * (i % 8)) & 0xff;
    };
    EXPECT_EQ(code(e4m3), encodeFloat(value, kE4m3Format));
    EXPECT_EQ(code(e5m2), encodeFloat(value, kE5m2Format));
  }
}

TEST(CudaElements, WriteAndCheckTheHostsPatterns) {
  for (uint64_t pattern : {0, 1, 2, 3, 4, 5, 6, 7, 8, 12345})
    for (uint64_t bytes : kSizes) {
      const PatternPart part(pattern, uint64_t{3} << 37 | 5);
      Bytes expected(bytes);
      host::fillPattern(expected.data(), part, 0, bytes);
      Bytes data = filled(bytes, [&](uint64_t unit) { return patternUnit(part, unit); });
      ASSERT_EQ(data, expected) << pattern << ", " << bytes << " B";
      if (bytes == 0) continue;
      data[bytes / 2] ^= std::byte{0x10};
      data[bytes - 1] ^= std::byte{0x81};
      const Mismatch wanted = host::checkPattern(data.data(), part, 0, bytes);
      Mismatch found;
      for (uint64_t unit = 0; unit < unitsOf(bytes); ++unit) {
        const Unit right = patternUnit(part, unit);
        checkUnit(right, unitAt(data, unit, right), unit, found);
      }
      EXPECT_GT(found.wrong, 0u);
      EXPECT_EQ(found.wrong, wanted.wrong) << pattern << ", " << bytes << " B";
      EXPECT_EQ(found.firstOffset, wanted.firstOffset);
      EXPECT_EQ(found.expectedBits, wanted.expectedBits);
      EXPECT_EQ(found.actualBits, wanted.actualBits);
    }
}

template <typename T>
void expectHostsVerdict(Dtype dtype, uint64_t nan) {
  for (uint64_t bytes : kSizes) {
    const uint64_t whole = bytes / sizeof(T) * sizeof(T);
    Bytes a(whole), b;
    if (whole > 0) host::fillNormal(a.data(), Dtype::kI8, 1, 0, whole);  // any bytes, without NaN
    for (std::byte& byte : a) byte &= std::byte{0x3f};
    b = a;
    if (whole > 0) b[whole / 2] ^= std::byte{1};
    if (whole > 0) std::memcpy(a.data() + (whole - sizeof(T)), &nan, sizeof(T));
    if (whole > 0) std::memcpy(b.data() + (whole - sizeof(T)), &nan, sizeof(T));
    const Mismatch wanted = host::compareElements(a.data(), b.data(), dtype, 0, whole);
    Mismatch found;
    for (uint64_t unit = 0; unit < unitsOf(whole); ++unit)
      compareUnits<T>(unitAt(a, unit, {0, 0}), unitAt(b, unit, {0, 0}), nanRule(dtype), unit, found);
    EXPECT_EQ(found.wrong, wanted.wrong) << dtypeName(dtype) << ", " << bytes << " B";
    EXPECT_EQ(found.wrong > 0, whole > 0);
    EXPECT_EQ(found.firstOffset, wanted.firstOffset) << dtypeName(dtype) << ", " << bytes << " B";
    EXPECT_EQ(found.expectedBits, wanted.expectedBits);
    EXPECT_EQ(found.actualBits, wanted.actualBits);
  }
}

TEST(CudaElements, CompareAsTheHostDoesAndCallNanWrong) {
  expectHostsVerdict<uint64_t>(Dtype::kF64, 0x7ff8000000000000u);
  expectHostsVerdict<uint32_t>(Dtype::kF32, 0x7fc00000u);
  expectHostsVerdict<uint16_t>(Dtype::kF16, 0x7e00u);
  expectHostsVerdict<uint16_t>(Dtype::kBf16, 0xffc0u);
  expectHostsVerdict<uint8_t>(Dtype::kFp8E4m3, 0x7fu);
  expectHostsVerdict<uint8_t>(Dtype::kFp8E5m2, 0x7du);
}

TEST(CudaElements, HashAsTheHostDoes) {
  for (uint64_t bytes : kSizes) {
    Bytes data(bytes);
    host::fillPattern(data.data(), 99, 0, bytes);
    uint64_t sum = 0;
    for (uint64_t unit = 0; unit < unitsOf(bytes); ++unit)
      sum += hashUnit(unitAt(data, unit, {0, 0}), unit, bytesOfUnit(unit, bytes));
    EXPECT_EQ(sum, host::hashWords(data.data(), 0, bytes)) << bytes;
  }
}

}  // namespace
}  // namespace muster::cuda
