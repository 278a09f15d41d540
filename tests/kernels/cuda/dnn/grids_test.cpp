// SPDX-License-Identifier: Apache-2.0
// Grids cover everything once, and stay within what a GPU takes.
#include "kernels/cuda/dnn/device/grids.h"

#include <gtest/gtest.h>

#include "kernels/cuda/dnn/token_order.h"

namespace muster::cuda {
namespace {

TEST(Blocks, CoverTheWork) {
  EXPECT_EQ(blocksFor(0), 1);
  EXPECT_EQ(blocksFor(1), 1);
  EXPECT_EQ(blocksFor(kThreads), 1);
  EXPECT_EQ(blocksFor(kThreads + 1), 2);
  EXPECT_EQ(blocksFor(int64_t{1} << 40), kMostBlocks);
}

TEST(ColumnGrids, CoverEveryColumnAndFillABlock) {
  for (int64_t columns : {1, 3, 4, 8, 24, 64, 100, 256, 1000, 2048, 4096, 50257})
    for (int vector : {1, 4, 8})
      for (int64_t rows : {int64_t{1}, int64_t{7}, int64_t{513}, int64_t{1605632}, int64_t{1} << 33}) {
        const ColumnGrid grid = columnGrid(rows, columns, vector, 264);
        EXPECT_EQ(grid.threadsX * grid.threadsY, kColumnThreads);
        EXPECT_EQ(grid.threadsY & (grid.threadsY - 1), 0);  // sums are halved
        EXPECT_GE(grid.blocksX * grid.threadsX * vector, columns);
        EXPECT_LT((grid.blocksX - 1) * grid.threadsX * vector, columns);
        EXPECT_GE(grid.blocksY, 1);
        EXPECT_LE(grid.blocksY, 1024);
        // No block is without a row.
        EXPECT_TRUE(grid.blocksY == 1 || (grid.blocksY - 1) * grid.threadsY < rows);
        EXPECT_EQ(columnScratch(rows, columns, vector, 2, 264), grid.blocksY * columns * 2);
      }
}

TEST(ColumnGrids, FillTheGpuWhereThereAreRows) {
  const ColumnGrid grid = columnGrid(1605632, 64, 8, 264);
  EXPECT_EQ(grid.blocksX * grid.blocksY, 264);
}

TEST(Vectors, NeedRowsThatKeepThemAligned) {
  EXPECT_EQ(vectorOf(64, 2), 8);
  EXPECT_EQ(vectorOf(60, 2), 1);
  EXPECT_EQ(vectorOf(60, 4), 4);
  EXPECT_EQ(vectorOf(1, 4), 1);
}

TEST(TokenOrder, IsStableAndCoversTheTable) {
  const std::vector<int32_t> tokens = {3, 0, 3, 1, 0, 3};
  const SortedTokens sorted = sortTokens(tokens, 5);
  EXPECT_EQ(sorted.starts, (std::vector<int32_t>{0, 2, 3, 3, 6, 6}));
  EXPECT_EQ(sorted.order, (std::vector<int32_t>{1, 4, 3, 0, 2, 5}));
}

TEST(TokenOrder, TakesNoTokens) {
  const SortedTokens sorted = sortTokens({}, 2);
  EXPECT_EQ(sorted.starts, (std::vector<int32_t>{0, 0, 0}));
  EXPECT_TRUE(sorted.order.empty());
}

}  // namespace
}  // namespace muster::cuda
