// SPDX-License-Identifier: Apache-2.0
// Scales of narrow types: where they lie, that they differ, and the reference that knows them.
#include "kernels/cuda/blas/scales.h"

#include <gtest/gtest.h>

#include <set>

#include "kernels/spec/narrow_floats.h"

namespace muster::cuda {
namespace {

GemmType blocksOf16() {
  GemmType type{};
  type.dtype = Dtype::kFp4;
  type.b = Dtype::kFp4;
  type.scaleBlock = 16;
  return type;
}

/// Figures of the layout's description, one tile of 128 rows by 4 blocks after the other.
TEST(BlockScales, LieInTilesOf128RowsBy4Blocks) {
  const GemmType type = blocksOf16();
  constexpr int64_t kInner = 16 * 10;  // 10 blocks: 3 tiles
  EXPECT_EQ(blockScaleOffset(type, kInner, 0, 0), 0u);
  EXPECT_EQ(blockScaleOffset(type, kInner, 0, 3), 3u);
  EXPECT_EQ(blockScaleOffset(type, kInner, 32, 0), 4u);
  EXPECT_EQ(blockScaleOffset(type, kInner, 96, 1), 13u);
  EXPECT_EQ(blockScaleOffset(type, kInner, 1, 0), 16u);
  EXPECT_EQ(blockScaleOffset(type, kInner, 127, 3), 511u);
  EXPECT_EQ(blockScaleOffset(type, kInner, 0, 4), 512u);
  EXPECT_EQ(blockScaleOffset(type, kInner, 128, 0), 3u * 512);
}

TEST(BlockScales, HaveAPlaceOfTheirOwnEach) {
  const GemmType type = blocksOf16();
  for (const int64_t rows : {1, 32, 130})
    for (const int64_t k : {32, 160, 1000}) {
      std::set<uint64_t> places;
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t block = 0; block * 16 < k; ++block) places.insert(blockScaleOffset(type, k, row, block));
      EXPECT_EQ(places.size(), static_cast<size_t>(rows * ((k + 15) / 16)));
      EXPECT_LT(*places.rbegin(), blockScaleBytes(type, rows, k));
    }
}

TEST(BlockScales, AreWrittenAsTheReferenceReadsThem) {
  const GemmType type = blocksOf16();
  constexpr int64_t kRows = 130, kInner = 1000;
  const std::vector<uint8_t> scales = blockScales(type, kRows, kInner, 7);
  std::set<float> seen;
  for (int64_t row = 0; row < kRows; ++row)
    for (int64_t block = 0; block * 16 < kInner; ++block) {
      const float scale = blockScale(7, row, block);
      seen.insert(scale);
      ASSERT_EQ(decodeFloat(scales[blockScaleOffset(type, kInner, row, block)], kE4m3Format), scale);
    }
  EXPECT_EQ(seen, (std::set<float>{0.5F, 1.0F}));
}

/// Rows, columns and blocks must not have the same scales, else a mix-up would not show.
TEST(BlockScales, DifferBetweenRowsBlocksAndSeeds) {
  int rows = 0, blocks = 0, seeds = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    rows += blockScale(1, i, 5) != blockScale(1, i + 1, 5);
    blocks += blockScale(1, 5, i) != blockScale(1, 5, i + 1);
    seeds += blockScale(1, i, 5) != blockScale(2, i, 5);
  }
  for (const int differing : {rows, blocks, seeds}) EXPECT_NEAR(differing, 500, 100);
}

TEST(BlockScales, AreInTheReference) {
  const GemmType type = blocksOf16();
  constexpr int64_t kInner = 50;  // the last block is not full
  std::vector<float> a(kInner), b(kInner);
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = static_cast<float>(i) - 20, b[i] = static_cast<float>(i % 7) + 1;
  const auto lane = [](const std::vector<float>& data) {
    return Lane{reinterpret_cast<const std::byte*>(data.data()), Dtype::kF32, 0, 1};
  };
  long double wanted = 0, unscaled = 0;
  for (int64_t i = 0; i < kInner; ++i) {
    const auto at = static_cast<size_t>(i);
    unscaled += a[at] * b[at];
    wanted += a[at] * blockScale(3, 17, i / 16) * b[at] * blockScale(4, 99, i / 16);
  }
  const long double found = scaledDotProduct(type, {lane(a), 17, 3}, {lane(b), 99, 4}, kInner);
  EXPECT_EQ(found, wanted);
  EXPECT_NE(found, unscaled);
}

TEST(MatrixScales, AreNotOneNorIsTheirProduct) {
  EXPECT_NE(kScaleOfA, 1);
  EXPECT_NE(kScaleOfB, 1);
  EXPECT_NE(kScaleOfA * kScaleOfB, 1);
}

}  // namespace
}  // namespace muster::cuda
