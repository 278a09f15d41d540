// SPDX-License-Identifier: Apache-2.0
// Comparisons: planted corruption is found with offset and bits, NaN is always wrong.
#include "kernels/host/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/spec/pattern.h"

namespace muster::host {
namespace {

template <typename T>
Mismatch compare(const std::vector<T>& a, const std::vector<T>& b, Dtype dtype) {
  return compareElements(reinterpret_cast<const std::byte*>(a.data()),
                         reinterpret_cast<const std::byte*>(b.data()), dtype, 0, a.size() * sizeof(T));
}

TEST(CompareElements, FindsNothingInEqualData) {
  const std::vector<float> a(1001, 1.5f);
  EXPECT_EQ(compare(a, a, Dtype::kF32).wrong, 0u);
}

TEST(CompareElements, NamesTheFirstOffsetAndBothBitPatterns) {
  std::vector<uint32_t> a(1001, 0x3f800000u), b = a;
  b[500] ^= 1u << 7;
  b[900] ^= 1u << 30;
  const Mismatch mismatch = compare(a, b, Dtype::kF32);
  EXPECT_EQ(mismatch.wrong, 2u);
  EXPECT_EQ(mismatch.firstOffset, 2000u);
  EXPECT_EQ(mismatch.expectedBits, 0x3f800000u);
  EXPECT_EQ(mismatch.actualBits, 0x3f800080u);
}

TEST(CompareElements, TellsMinusZeroFromZero) {
  EXPECT_EQ(compare<double>({0.0}, {-0.0}, Dtype::kF64).wrong, 1u);
}

TEST(CompareElements, CallsTheSameNanWrong) {
  const std::vector<double> f64 = {1, std::nan(""), -std::nan("1")};
  EXPECT_EQ(compare(f64, f64, Dtype::kF64).wrong, 2u);
  const std::vector<uint16_t> bf16 = {0x7f80, 0x7f81, 0xffff};  // infinity, NaN, NaN
  EXPECT_EQ(compare(bf16, bf16, Dtype::kBf16).wrong, 2u);
  const std::vector<uint16_t> f16 = {0x7c00, 0xfc01};
  EXPECT_EQ(compare(f16, f16, Dtype::kF16).wrong, 1u);
  const std::vector<uint8_t> e4m3 = {0x7e, 0x7f, 0xff};
  EXPECT_EQ(compare(e4m3, e4m3, Dtype::kFp8E4m3).wrong, 2u);
  const std::vector<uint8_t> e5m2 = {0x7c, 0x7d, 0xfe};
  EXPECT_EQ(compare(e5m2, e5m2, Dtype::kFp8E5m2).wrong, 2u);
}

TEST(CompareElements, KnowsNoNanAmongIntegers) {
  const std::vector<uint8_t> i8 = {0x7f, 0xff, 0x80, 0};
  EXPECT_EQ(compare(i8, i8, Dtype::kI8).wrong, 0u);
}

/// Every pattern, a buffer that does not end on a word.
TEST(CheckPattern, FindsNothingInWhatWasFilled) {
  std::vector<std::byte> data(1003);
  for (const NamedPattern& pattern : kPatterns) {
    const auto number = static_cast<uint64_t>(pattern.pattern);
    fillPattern(data.data(), number, 0, data.size());
    EXPECT_EQ(checkPattern(data.data(), number, 0, data.size()).wrong, 0u) << pattern.name;
  }
}

TEST(CheckPattern, NamesOffsetAndFlippedBit) {
  std::vector<std::byte> data(4096);
  for (const NamedPattern& pattern : kPatterns) {
    const auto number = static_cast<uint64_t>(pattern.pattern);
    fillPattern(data.data(), number, 0, data.size());
    data[1234] ^= std::byte{0x20};
    const Mismatch mismatch = checkPattern(data.data(), number, 0, data.size());
    EXPECT_EQ(mismatch.wrong, 1u) << pattern.name;
    EXPECT_EQ(mismatch.firstOffset, 1234u) << pattern.name;
    EXPECT_EQ(mismatch.expectedBits ^ mismatch.actualBits, 0x20ull << (1234 % 8 * 8)) << pattern.name;
  }
}

TEST(CheckPattern, SeesTheLastIncompleteWord) {
  std::vector<std::byte> data(13);
  fillPattern(data.data(), 100, 0, data.size());
  data[12] ^= std::byte{1};
  const Mismatch mismatch = checkPattern(data.data(), 100, 0, data.size());
  EXPECT_EQ(mismatch.wrong, 1u);
  EXPECT_EQ(mismatch.firstOffset, 12u);
}

TEST(CheckPattern, CountsBytes) {
  std::vector<std::byte> data(64);
  fillPattern(data.data(), 0, 0, data.size());
  std::memset(data.data() + 3, 0xff, 10);
  EXPECT_EQ(checkPattern(data.data(), 0, 0, data.size()).wrong, 10u);
}

TEST(Merge, AddsCountsAndKeepsTheFirst) {
  const Mismatch whole = merge({{}, {2, 800, 1, 2}, {}, {3, 1600, 3, 4}});
  EXPECT_EQ(whole.wrong, 5u);
  EXPECT_EQ(whole.firstOffset, 800u);
  EXPECT_EQ(whole.actualBits, 2u);
}

}  // namespace
}  // namespace muster::host
