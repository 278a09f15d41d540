// SPDX-License-Identifier: Apache-2.0
// How kernels are cut into blocks. Plain functions that tests run on the CPU.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/host_device.h"

namespace muster::cuda {

constexpr int kThreads = 256;        ///< of a block that goes through elements
constexpr int kColumnThreads = 512;  ///< of a block that goes through columns
constexpr int64_t kMostBlocks = int64_t{1} << 20;

/// Blocks for `count` pieces of work in loops that stride over the whole grid; at least one.
inline int64_t blocksFor(int64_t count, int64_t threads = kThreads) {
  return std::clamp<int64_t>((count + threads - 1) / threads, 1, kMostBlocks);
}

/// A grid over a matrix whose columns are summed or scaled: a thread keeps its columns and goes down the
/// rows. x counts vectors of columns, y rows.
struct ColumnGrid {
  int threadsX = 1, threadsY = 1;
  int64_t blocksX = 1, blocksY = 1;
};

/// `vector` columns a thread; `blocks` is about how many blocks the GPU wants (two for each multiprocessor).
inline ColumnGrid columnGrid(int64_t rows, int64_t columns, int vector, int64_t blocks) {
  const int64_t vectors = (columns + vector - 1) / vector;
  ColumnGrid grid;
  while (grid.threadsX < 32 && grid.threadsX < vectors) grid.threadsX *= 2;
  grid.threadsY = kColumnThreads / grid.threadsX;
  grid.blocksX = (vectors + grid.threadsX - 1) / grid.threadsX;
  const int64_t most = (rows + grid.threadsY - 1) / grid.threadsY;
  grid.blocksY =
      std::clamp<int64_t>(blocks / grid.blocksX, 1, std::min<int64_t>(std::max<int64_t>(most, 1), 1024));
  return grid;
}

/// Floats of scratch memory for `sums` sums of each column.
inline int64_t columnScratch(int64_t rows, int64_t columns, int vector, int sums, int64_t blocks) {
  return columnGrid(rows, columns, vector, blocks).blocksY * columns * sums;
}

/// Elements of a 16-byte vector where rows of `width` keep vectors aligned, else 1.
inline int vectorOf(int64_t width, int64_t elementBytes) {
  const auto most = static_cast<int>(16 / elementBytes);
  return width % most == 0 ? most : 1;
}

}  // namespace muster::cuda
