// SPDX-License-Identifier: Apache-2.0
// Pooling of blocked images.
#include <algorithm>

#include "kernels/host/nn/loops/tables.h"

namespace muster::host::MUSTER_ISA::MUSTER_STORED {
namespace {

/// The part of a window that lies on the image.
struct Window {
  int64_t begin, end, first;  ///< pixels [begin, end); `first`: number of `begin` in the window
};
MUSTER_INLINE Window windowAt(int64_t out, int64_t size, const PoolData& pool) {
  const int64_t start = out * pool.stride - pool.padding;
  const int64_t begin = std::max<int64_t>(start, 0);
  return {begin, std::min(start + pool.kernel, size), begin - start};
}

/// Calls body(input pixel, number in the window) for each pixel of the window of output (row, column).
template <typename Body>
MUSTER_INLINE void eachPixel(const PoolData& pool, int64_t row, int64_t column, Body body) {
  const Window rows = windowAt(row, pool.inHeight, pool);
  const Window columns = windowAt(column, pool.inWidth, pool);
  for (int64_t r = rows.begin; r < rows.end; ++r)
    for (int64_t c = columns.begin; c < columns.end; ++c)
      body(r * pool.inWidth + c,
           static_cast<int>((rows.first + r - rows.begin) * pool.kernel + columns.first + c - columns.begin));
}

/// Calls body(x, y) in parallel for each slab: where it begins in the input, and in the output.
template <typename Body>
void eachSlab(const PoolData& pool, Body body) {
  const int64_t in = pool.inHeight * pool.inWidth * pool.out.lanes;
  const int64_t out = pool.out.slab();
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < pool.out.images * pool.out.blocks; ++i) body(i * in, i * out);
}

/// `taken` keeps which pixel of the window was the largest; NaN is larger than anything.
template <int B>
void maxForwardSlab(const PoolData& pool, const Stored* x, Stored* y, uint8_t* taken) {
  for (int64_t row = 0; row < pool.outHeight; ++row)
    for (int64_t column = 0; column < pool.outWidth; ++column) {
      Vec<B> best = -INFINITY - Vec<B>{};
      IntVec<B> index = {};
      eachPixel(pool, row, column, [&](int64_t pixel, int number) {
        const Vec<B> v = load<Vec<B>>(x + pixel * B);
        const IntVec<B> larger = (v > best) | (v != v);
        best = larger ? v : best;
        index = larger ? number - IntVec<B>{} : index;
      });
      store(y, best);
      for (int lane = 0; lane < B; ++lane) taken[lane] = static_cast<uint8_t>(index[lane]);
      y += B;
      taken += B;
    }
}

template <int B>
void maxBackwardSlab(const PoolData& pool, const Stored* dy, const uint8_t* taken, Stored* dx) {
  std::fill(dx, dx + pool.inHeight * pool.inWidth * B, Stored{});
  for (int64_t row = 0; row < pool.outHeight; ++row)
    for (int64_t column = 0; column < pool.outWidth; ++column) {
      const Vec<B> gradient = load<Vec<B>>(dy);
      IntVec<B> index;
      for (int lane = 0; lane < B; ++lane) index[lane] = taken[lane];
      eachPixel(pool, row, column, [&](int64_t pixel, int number) {
        const Vec<B> old = load<Vec<B>>(dx + pixel * B);
        store(dx + pixel * B, Vec<B>(index == number ? old + gradient : old));
      });
      dy += B;
      taken += B;
    }
}

template <int B>
void averageForward(const ImageBlocks& s, int64_t channels, const Stored* x, Stored* y) {
#pragma omp parallel for collapse(2) schedule(static)
  for (int64_t image = 0; image < s.images; ++image)
    for (int64_t block = 0; block < s.blocks; ++block) {
      const Stored* from = x + (image * s.blocks + block) * s.slab();
      Vec<B> sum = {};
      for (int64_t i = 0; i < s.pixels; ++i) sum += load<Vec<B>>(from + i * B);
      sum /= static_cast<float>(s.pixels);
      storePart(y + image * channels + block * B, sum, std::min<int64_t>(B, channels - block * B));
    }
}

template <int B>
void averageBackward(const ImageBlocks& s, int64_t channels, const Stored* dy, Stored* dx) {
#pragma omp parallel for collapse(2) schedule(static)
  for (int64_t image = 0; image < s.images; ++image)
    for (int64_t block = 0; block < s.blocks; ++block) {
      Vec<B> share = {};
      for (int64_t lane = 0; lane < std::min<int64_t>(B, channels - block * B); ++lane)
        share[lane] = loadOne(dy + image * channels + block * B + lane) / static_cast<float>(s.pixels);
      Stored* to = dx + (image * s.blocks + block) * s.slab();
      for (int64_t i = 0; i < s.pixels; ++i) store(to + i * B, share);
    }
}

}  // namespace

void maxPoolForward(const PoolData& pool, const void* x, void* y, uint8_t* taken) {
  eachSlab(pool, [&](int64_t in, int64_t out) {
    pool.out.lanes == 16 ? maxForwardSlab<16>(pool, stored(x) + in, stored(y) + out, taken + out)
                         : maxForwardSlab<8>(pool, stored(x) + in, stored(y) + out, taken + out);
  });
}

void maxPoolBackward(const PoolData& pool, const void* dy, const uint8_t* taken, void* dx) {
  eachSlab(pool, [&](int64_t in, int64_t out) {
    pool.out.lanes == 16 ? maxBackwardSlab<16>(pool, stored(dy) + out, taken + out, stored(dx) + in)
                         : maxBackwardSlab<8>(pool, stored(dy) + out, taken + out, stored(dx) + in);
  });
}

void averagePoolForward(const ImageBlocks& s, int64_t channels, const void* x, void* y) {
  s.lanes == 16 ? averageForward<16>(s, channels, stored(x), stored(y))
                : averageForward<8>(s, channels, stored(x), stored(y));
}
void averagePoolBackward(const ImageBlocks& s, int64_t channels, const void* dy, void* dx) {
  s.lanes == 16 ? averageBackward<16>(s, channels, stored(dy), stored(dx))
                : averageBackward<8>(s, channels, stored(dy), stored(dx));
}

}  // namespace muster::host::MUSTER_ISA::MUSTER_STORED
