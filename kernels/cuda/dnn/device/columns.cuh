// SPDX-License-Identifier: Apache-2.0
// Sums over the columns of a matrix, in a fixed order: statistics of batch normalisation, gradients of
// biases, scales and shifts. Blocks leave partial sums; a second kernel adds them up and finishes.
#pragma once

#include "kernels/cuda/dnn/device/vectors.cuh"

namespace muster::cuda {

/// `load.begin(column)` once, then `load.add(row, column, sums)` for the rows of this thread.
template <int kSums, int kVector, typename Load>
__global__ void __launch_bounds__(kColumnThreads)
    partialColumnSums(Load load, int64_t rows, int64_t columns, float* partial) {
  __shared__ float shared[kSums][kVector][kColumnThreads];
  const int64_t column = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * kVector;
  float sums[kSums][kVector] = {};
  if (column < columns) {
    load.begin(column);
    const int64_t stride = static_cast<int64_t>(gridDim.y) * blockDim.y;
#pragma unroll 2
    for (int64_t row = static_cast<int64_t>(blockIdx.y) * blockDim.y + threadIdx.y; row < rows; row += stride)
      load.add(row, column, sums);
  }
  const unsigned place = threadIdx.y * blockDim.x + threadIdx.x;
#pragma unroll
  for (int s = 0; s < kSums; ++s)
#pragma unroll
    for (int i = 0; i < kVector; ++i) shared[s][i][place] = sums[s][i];
  for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.y >= half) continue;
#pragma unroll
    for (int s = 0; s < kSums; ++s)
#pragma unroll
      for (int i = 0; i < kVector; ++i) shared[s][i][place] += shared[s][i][place + half * blockDim.x];
  }
  if (threadIdx.y != 0 || column >= columns) return;
#pragma unroll
  for (int s = 0; s < kSums; ++s)
#pragma unroll
    for (int i = 0; i < kVector; ++i)
      partial[(static_cast<int64_t>(blockIdx.y) * kSums + s) * columns + column + i] = shared[s][i][place];
}

constexpr int kFinishX = 32, kFinishY = 16;

/// Adds up the blocks' parts of each column and calls finish(column, sums).
template <int kSums, typename Finish>
__global__ void __launch_bounds__(kFinishX* kFinishY)
    finishColumnSums(Finish finish, int64_t columns, int64_t parts, const float* partial) {
  __shared__ float shared[kSums][kFinishY][kFinishX];
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kFinishX + threadIdx.x;
  float sums[kSums] = {};
  if (column < columns)
    for (int64_t part = threadIdx.y; part < parts; part += kFinishY)
#pragma unroll
      for (int s = 0; s < kSums; ++s) sums[s] += partial[(part * kSums + s) * columns + column];
#pragma unroll
  for (int s = 0; s < kSums; ++s) shared[s][threadIdx.y][threadIdx.x] = sums[s];
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
#pragma unroll
  for (int s = 0; s < kSums; ++s)
    for (int y = 1; y < kFinishY; ++y) sums[s] += shared[s][y][threadIdx.x];
  finish(column, sums);
}

/// Both kernels. `partial` has columnScratch() floats.
template <int kSums, int kVector, typename Load, typename Finish>
cudaError_t sumColumns(const Columns& c, const Load& load, const Finish& finish) {
  const ColumnGrid grid = columnGrid(c.rows, c.columns, kVector, c.blocks);
  partialColumnSums<kSums, kVector>
      <<<dim3(static_cast<unsigned>(grid.blocksX), static_cast<unsigned>(grid.blocksY)),
         dim3(static_cast<unsigned>(grid.threadsX), static_cast<unsigned>(grid.threadsY)), 0, c.stream>>>(
          load, c.rows, c.columns, c.partial);
  finishColumnSums<kSums>
      <<<static_cast<unsigned>((c.columns + kFinishX - 1) / kFinishX), dim3(kFinishX, kFinishY), 0,
         c.stream>>>(finish, c.columns, grid.blocksY, c.partial);
  return cudaGetLastError();
}

/// Calls `body(row, column)` for every vector; the thread's columns stay the same: body.begin(column) first.
template <int kVector, typename Body>
__global__ void __launch_bounds__(kColumnThreads) eachRowOfColumns(Body body, int64_t rows, int64_t columns) {
  const int64_t column = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * kVector;
  if (column >= columns) return;
  body.begin(column);
  const int64_t stride = static_cast<int64_t>(gridDim.y) * blockDim.y;
#pragma unroll 4
  for (int64_t row = static_cast<int64_t>(blockIdx.y) * blockDim.y + threadIdx.y; row < rows; row += stride)
    body.apply(row, column);
}

template <int kVector, typename Body>
cudaError_t applyToColumns(const Columns& c, const Body& body) {
  // Three times as many blocks as for sums: nothing is to be put together afterwards.
  const ColumnGrid grid = columnGrid(c.rows, c.columns, kVector, 3 * c.blocks);
  eachRowOfColumns<kVector>
      <<<dim3(static_cast<unsigned>(grid.blocksX), static_cast<unsigned>(grid.blocksY)),
         dim3(static_cast<unsigned>(grid.threadsX), static_cast<unsigned>(grid.threadsY)), 0, c.stream>>>(
          body, c.rows, c.columns);
  return cudaGetLastError();
}

}  // namespace muster::cuda
