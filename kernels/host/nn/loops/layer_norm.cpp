// SPDX-License-Identifier: Apache-2.0
// Layer normalisation over rows.
#include <algorithm>

#include "kernels/host/nn/loops/tables.h"
#include "kernels/host/nn/loops/vec.h"

namespace muster::host::MUSTER_ISA {
namespace {

/// Sum over a row of what body gives for each vector; lanes beyond the end must give zero.
template <typename Body>
MUSTER_INLINE float sumRow(int64_t width, Body body) {
  Float sum[2] = {};
  int64_t i = 0;
  for (; i + 2 * kLanes <= width; i += 2 * kLanes) {
    sum[0] += body(i, kLanes);
    sum[1] += body(i + kLanes, kLanes);
  }
  for (; i + kLanes <= width; i += kLanes) sum[0] += body(i, kLanes);
  if (i < width) sum[1] += body(i, static_cast<int>(width - i));
  return sumOf(sum[0] + sum[1]);
}

MUSTER_INLINE Float get(const float* from, int lanes, float filler = 0) {
  return lanes == kLanes ? load(from) : loadPart(from, lanes, filler);
}

MUSTER_INLINE void forwardRow(const LayerNormData& d, int64_t row) {
  const int64_t width = d.shape.width;
  const float* x = d.x + row * width;
  float* y = d.y + row * width;
  const float mean =
      sumRow(width, [&](int64_t i, int lanes) { return get(x + i, lanes); }) / static_cast<float>(width);
  const float squares = sumRow(width, [&](int64_t i, int lanes) {
    const Float distance = get(x + i, lanes, mean) - mean;
    return Float(distance * distance);
  });
  const float inverse = 1.0f / std::sqrt(squares / static_cast<float>(width) + d.epsilon);
  d.mean[row] = mean;
  d.inverse[row] = inverse;
  for (int64_t i = 0; i < width; ++i) y[i] = (x[i] - mean) * inverse * d.scale[i] + d.shift[i];
}

/// Adds the row's part to the sums for scale and shift, and writes dx.
MUSTER_INLINE void backwardRow(const LayerNormData& d, const LayerNormGradient& g, int64_t row,
                               float* scaleSum, float* shiftSum) {
  const int64_t width = d.shape.width;
  const float* x = d.x + row * width;
  const float* dy = g.dy + row * width;
  float* dx = g.dx + row * width;
  const float mean = d.mean[row];
  const float inverse = d.inverse[row];
  const auto count = static_cast<float>(width);
  const float meanG =
      sumRow(width,
             [&](int64_t i, int lanes) { return Float(get(dy + i, lanes) * get(d.scale + i, lanes)); }) /
      count;
  const float meanProduct = sumRow(width,
                                   [&](int64_t i, int lanes) {
                                     return Float(get(dy + i, lanes) * get(d.scale + i, lanes) *
                                                  ((get(x + i, lanes) - mean) * inverse));
                                   }) /
                            count;
  const float keep = g.addToDx ? 1.0f : 0.0f;
#pragma omp simd
  for (int64_t i = 0; i < width; ++i) {
    const float normalised = (x[i] - mean) * inverse;
    const float gradient = dy[i];
    scaleSum[i] += gradient * normalised;
    shiftSum[i] += gradient;
    const float value = inverse * (gradient * d.scale[i] - meanG - normalised * meanProduct);
    dx[i] = keep != 0 ? dx[i] + value : value;
  }
}

}  // namespace

void layerNormForward(const LayerNormData& d) {
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < d.shape.rows; ++row) forwardRow(d, row);
}

void layerNormBackward(const LayerNormData& d, const LayerNormGradient& g) {
  const int64_t width = d.shape.width;
  int threads = 1;
#pragma omp parallel
  {
#pragma omp single
    threads = omp_get_num_threads();
    float* sums = g.scratch + 2 * width * omp_get_thread_num();
    std::fill(sums, sums + 2 * width, 0.0f);
    const Share share = shareOf(d.shape.rows);
    for (int64_t row = share.begin; row < share.end; ++row) backwardRow(d, g, row, sums, sums + width);
  }
  for (int64_t i = 0; i < width; ++i) {
    float scale = 0;
    float shift = 0;
    for (int64_t thread = 0; thread < threads; ++thread) {
      scale += g.scratch[2 * width * thread + i];
      shift += g.scratch[2 * width * thread + width + i];
    }
    g.scale[i] = scale;
    g.shift[i] = shift;
  }
}

}  // namespace muster::host::MUSTER_ISA
