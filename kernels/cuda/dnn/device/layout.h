// SPDX-License-Identifier: Apache-2.0
// Where elements lie on the GPU: images as NHWC and filters as KRSC, both with padded channels, beside
// PyTorch's NCHW and KCRS. Plain functions that tests run on the CPU.
#pragma once

#include <cstdint>

#include "kernels/cuda/host_device.h"

namespace muster::cuda {

/// The next multiple of `unit`.
MUSTER_HD constexpr int64_t padTo(int64_t count, int64_t unit) {
  return (count + unit - 1) / unit * unit;
}

/// Images [n, c, h, w] that are kept as [n, h, w, padded]; channels from c on are zero.
struct ImageShape {
  int64_t n = 0, c = 0, h = 0, w = 0;
  int64_t padded = 0;
  [[nodiscard]] MUSTER_HD int64_t rows() const { return n * h * w; }
  [[nodiscard]] MUSTER_HD int64_t elements() const { return rows() * padded; }
};

/// Where element (n, c, h, w), given by its index in NCHW, lies in the padded NHWC image.
MUSTER_HD inline int64_t nhwcOf(const ImageShape& s, int64_t nchw) {
  const int64_t pixel = nchw % (s.h * s.w);
  const int64_t c = nchw / (s.h * s.w) % s.c;
  const int64_t n = nchw / (s.h * s.w) / s.c;
  return (n * s.h * s.w + pixel) * s.padded + c;
}

/// Filters [k, c, r, s] that are kept as [paddedK, r, s, paddedC]; what lies beyond k and c is zero, in
/// values and gradients alike.
struct FilterShape {
  int64_t k = 0, c = 0, r = 0, s = 0;
  int64_t paddedK = 0, paddedC = 0;
  [[nodiscard]] MUSTER_HD int64_t elements() const { return k * c * r * s; }
  [[nodiscard]] MUSTER_HD int64_t paddedElements() const { return paddedK * r * s * paddedC; }
};

/// Where element (k, c, r, s), given by its index in KCRS, lies in the padded KRSC filter.
MUSTER_HD inline int64_t krscOf(const FilterShape& f, int64_t kcrs) {
  const int64_t window = f.r * f.s;
  const int64_t at = kcrs % window;
  const int64_t c = kcrs / window % f.c;
  const int64_t k = kcrs / window / f.c;
  return (k * window + at) * f.paddedC + c;
}

/// Packed projections [n, t, 3, heads, width] (q, k and v side by side) and three tensors [n, heads, t,
/// width] one behind the other, for products in batches of heads.
struct HeadShape {
  int64_t n = 0, t = 0, heads = 0, width = 0;
  [[nodiscard]] MUSTER_HD int64_t elements() const { return n * t * heads * width; }  ///< of one of them
};

/// Where element `index` of [parts, n, heads, t, width] lies in [n, t, parts, heads, width].
MUSTER_HD inline int64_t packedOf(const HeadShape& s, int64_t parts, int64_t index) {
  const int64_t i = index % s.width;
  const int64_t t = index / s.width % s.t;
  const int64_t h = index / s.width / s.t % s.heads;
  const int64_t n = index / s.width / s.t / s.heads % s.n;
  const int64_t part = index / s.width / s.t / s.heads / s.n;
  return (((n * s.t + t) * parts + part) * s.heads + h) * s.width + i;
}

}  // namespace muster::cuda
