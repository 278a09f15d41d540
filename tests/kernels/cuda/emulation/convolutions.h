// SPDX-License-Identifier: Apache-2.0
// Convolutions by plain loops over NHWC images and KRSC filters.
#pragma once

#include <cstdint>

#include "kernels/cuda/dnn/device/kernels.h"

namespace muster::emulation {

struct ImageSize {
  cuda::Element element = cuda::Element::kF32;
  int64_t n = 0, c = 0, h = 0, w = 0;
  [[nodiscard]] int64_t elements() const { return n * c * h * w; }
};
struct FilterSize {
  cuda::Element element = cuda::Element::kF32;
  int64_t k = 0, c = 0, r = 0, s = 0;
  [[nodiscard]] int64_t elements() const { return k * c * r * s; }
};

struct ConvolutionSize {
  ImageSize x, y;
  FilterSize w;
  int64_t padding = 0, stride = 1;
  bool tensorCores = false;  ///< inputs are rounded to TF32

  [[nodiscard]] bool fits() const {
    const auto sized = [&](int64_t in, int64_t kernel, int64_t out) {
      return (in + 2 * padding - kernel) / stride + 1 == out;
    };
    return x.c == w.c && y.c == w.k && x.n == y.n && sized(x.h, w.r, y.h) && sized(x.w, w.s, y.w);
  }
};

/// Each writes one of the three and reads the others; adds beta times what was there.
void convolve(const ConvolutionSize& size, const void* x, const void* w, void* y, float beta);
void convolveToInput(const ConvolutionSize& size, void* dx, const void* w, const void* dy, float beta);
void convolveToFilter(const ConvolutionSize& size, const void* x, void* dw, const void* dy, float beta);

}  // namespace muster::emulation
