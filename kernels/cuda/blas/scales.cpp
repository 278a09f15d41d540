// SPDX-License-Identifier: Apache-2.0
// Computes and lays out the scales of fp8 and fp4 operands.
#include "kernels/cuda/blas/scales.h"

#include <algorithm>

#include "kernels/spec/pattern.h"

namespace muster::cuda {
namespace {

constexpr int64_t kTileRows = 128, kTileBlocks = 4, kTileBytes = kTileRows * kTileBlocks;
constexpr int64_t kRowsTogether = 32, kBytesTogether = 16;
constexpr uint8_t kOneInE4m3 = 0x38, kHalfInE4m3 = 0x30;

int64_t blocksOf(const GemmType& type, int64_t k) {
  return (k + type.scaleBlock - 1) / type.scaleBlock;
}

bool isHalf(uint64_t seed, int64_t row, int64_t block) {
  return (scatter(scatter(seed ^ static_cast<uint64_t>(row)) ^ static_cast<uint64_t>(block)) & 1) != 0;
}

}  // namespace

float blockScale(uint64_t seed, int64_t row, int64_t block) {
  return isHalf(seed, row, block) ? 0.5F : 1.0F;
}

uint64_t blockScaleOffset(const GemmType& type, int64_t k, int64_t row, int64_t block) {
  const int64_t tilesInARow = (blocksOf(type, k) + kTileBlocks - 1) / kTileBlocks;
  const int64_t tile = row / kTileRows * tilesInARow + block / kTileBlocks;
  const int64_t inTile = row % kTileRows;
  return static_cast<uint64_t>(tile * kTileBytes + inTile % kRowsTogether * kBytesTogether +
                               inTile / kRowsTogether * kTileBlocks + block % kTileBlocks);
}

std::vector<uint8_t> blockScales(const GemmType& type, int64_t rows, int64_t k, uint64_t seed) {
  std::vector<uint8_t> scales(blockScaleBytes(type, rows, k));
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t block = 0; block < blocksOf(type, k); ++block)
      scales[blockScaleOffset(type, k, row, block)] = isHalf(seed, row, block) ? kHalfInE4m3 : kOneInE4m3;
  return scales;
}

long double scaledDotProduct(const GemmType& type, const ScaledLane& a, const ScaledLane& b, int64_t k) {
  long double sum = 0;
  for (int64_t block = 0; block < blocksOf(type, k); ++block) {
    const int64_t first = block * type.scaleBlock;
    const auto part = [&](const ScaledLane& from) {
      Lane lane = from.lane;
      lane.first += first * lane.stride;
      return lane;
    };
    const float scale = blockScale(a.seed, a.row, block) * blockScale(b.seed, b.row, block);
    sum += dotProduct(part(a), part(b), std::min<int64_t>(type.scaleBlock, k - first)) * scale;
  }
  return sum;
}

}  // namespace muster::cuda
