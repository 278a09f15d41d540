// SPDX-License-Identifier: Apache-2.0
// Scales of narrow types: one for a whole matrix (fp8), or one for each few elements of a row (fp4). All are
// powers of two, so that they round nothing, and they differ, so that one which is left out or taken from
// another place gives a wrong result. Plain functions, tested on the CPU.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/checks/gemm_reference.h"
#include "kernels/cuda/blas/types.h"

namespace muster::cuda {

// Of fp8: neither of them, and not their product, is 1.
inline constexpr float kScaleOfA = 0.5F;
inline constexpr float kScaleOfB = 8;

/// The scale of one block of a row, a pure function of `seed`: 1 or 0.5, so that results stay in the bounds
/// of the error model, which is one of unscaled inputs.
float blockScale(uint64_t seed, int64_t row, int64_t block);

/// Where cuBLASLt reads the scale of a block: tiles of 128 rows by 4 blocks lie one behind the other, those
/// of the same rows first; in a tile, row r and block b are at (r % 32) * 16 + (r / 32) * 4 + b ("1D Block
/// Scaling Factors Layout", cuBLAS 12.8 and later).
uint64_t blockScaleOffset(const GemmType& type, int64_t k, int64_t row, int64_t block);

/// All scales of a matrix of `rows` rows of `k` elements as e4m3, in their places.
std::vector<uint8_t> blockScales(const GemmType& type, int64_t rows, int64_t k, uint64_t seed);

/// A matrix of one operand: its row, and the seed of its scales.
struct ScaledLane {
  Lane lane;
  int64_t row = 0;
  uint64_t seed = 0;
};
/// The sum of `k` products of two rows whose blocks are scaled.
long double scaledDotProduct(const GemmType& type, const ScaledLane& a, const ScaledLane& b, int64_t k);

}  // namespace muster::cuda
