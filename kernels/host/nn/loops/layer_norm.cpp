// SPDX-License-Identifier: Apache-2.0
// Layer normalisation over rows.
#include <algorithm>

#include "kernels/host/nn/loops/tables.h"

namespace muster::host::MUSTER_ISA::MUSTER_STORED {
namespace {

/// Sum over a row of what body gives for each vector; lanes beyond the end must give zero.
template <typename Body>
MUSTER_INLINE float sumRow(int64_t width, Body body) {
  constexpr int64_t kPair = int64_t{2} * kLanes;
  Float sum[2] = {};
  int64_t i = 0;
  for (; i + kPair <= width; i += kPair) {
    sum[0] += body(i, kLanes);
    sum[1] += body(i + kLanes, kLanes);
  }
  for (; i + kLanes <= width; i += kLanes) sum[0] += body(i, kLanes);
  if (i < width) sum[1] += body(i, static_cast<int>(width - i));
  return sumOf(sum[0] + sum[1]);
}

MUSTER_INLINE void forwardRow(const LayerNormData& d, int64_t row) {
  const int64_t width = d.shape.width;
  const Stored* x = stored(d.x) + row * width;
  Stored* y = stored(d.y) + row * width;
  const float mean =
      sumRow(width, [&](int64_t i, int lanes) { return loadSome(x + i, lanes); }) / static_cast<float>(width);
  const float squares = sumRow(width, [&](int64_t i, int lanes) {
    const Float distance = loadSome(x + i, lanes, mean) - mean;
    return Float(distance * distance);
  });
  const float inverse = 1.0f / std::sqrt(squares / static_cast<float>(width) + d.epsilon);
  d.mean[row] = mean;
  d.inverse[row] = inverse;
  eachVectorOf(0, width, [&](int64_t i, int lanes) {
    const Float normalised = (loadSome(x + i, lanes) - mean) * inverse;
    storeSome(y + i, normalised * loadSome(d.scale + i, lanes) + loadSome(d.shift + i, lanes), lanes);
  });
}

/// Adds the row's part to the sums for scale and shift, and writes dx.
MUSTER_INLINE void backwardRow(const LayerNormData& d, const LayerNormGradient& g, int64_t row,
                               float* scaleSum, float* shiftSum) {
  const int64_t width = d.shape.width;
  const Stored* x = stored(d.x) + row * width;
  const Stored* dy = stored(g.dy) + row * width;
  Stored* dx = stored(g.dx) + row * width;
  const float mean = d.mean[row];
  const float inverse = d.inverse[row];
  const auto count = static_cast<float>(width);
  const float meanG = sumRow(width,
                             [&](int64_t i, int lanes) {
                               return Float(loadSome(dy + i, lanes) * loadSome(d.scale + i, lanes));
                             }) /
                      count;
  const float meanProduct = sumRow(width,
                                   [&](int64_t i, int lanes) {
                                     return Float(loadSome(dy + i, lanes) * loadSome(d.scale + i, lanes) *
                                                  ((loadSome(x + i, lanes) - mean) * inverse));
                                   }) /
                            count;
  eachVectorOf(0, width, [&](int64_t i, int lanes) {
    const Float normalised = (loadSome(x + i, lanes) - mean) * inverse;
    const Float gradient = loadSome(dy + i, lanes);
    storeSome(scaleSum + i, loadSome(scaleSum + i, lanes) + gradient * normalised, lanes);
    storeSome(shiftSum + i, loadSome(shiftSum + i, lanes) + gradient, lanes);
    Float value = inverse * (gradient * loadSome(d.scale + i, lanes) - meanG - normalised * meanProduct);
    if (g.addToDx) value += loadSome(dx + i, lanes);
    storeSome(dx + i, value, lanes);
  });
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

}  // namespace muster::host::MUSTER_ISA::MUSTER_STORED
