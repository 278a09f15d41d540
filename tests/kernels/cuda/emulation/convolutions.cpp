// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/cuda/emulation/convolutions.h"

#include <bit>
#include <cmath>

#include "tests/kernels/cuda/emulation/numbers.h"

namespace muster::emulation {
namespace {

/// TF32 keeps 10 bits of a fraction's 23: to the nearest, as cvt.rna.tf32 does.
float toTf32(float value) {
  if (!std::isfinite(value)) return value;
  return std::bit_cast<float>((std::bit_cast<uint32_t>(value) + 0x1000) & ~uint32_t{0x1FFF});
}

std::vector<float> read(const ConvolutionSize& s, const void* from, Element element, int64_t count) {
  std::vector<float> values = readNumbers(from, element, count);
  if (s.tensorCores)
    for (float& value : values) value = toTf32(value);
  return values;
}

/// Calls visit(pixel of x, pixel of y, place in the filter) wherever the three meet.
template <typename Visit>
void each(const ConvolutionSize& s, Visit visit) {
  for (int64_t n = 0; n < s.y.n; ++n)
    for (int64_t h = 0; h < s.y.h; ++h)
      for (int64_t v = 0; v < s.y.w; ++v)
        for (int64_t rs = 0; rs < s.w.r * s.w.s; ++rs) {
          const int64_t row = h * s.stride - s.padding + rs / s.w.s;
          const int64_t column = v * s.stride - s.padding + rs % s.w.s;
          if (row < 0 || column < 0 || row >= s.x.h || column >= s.x.w) continue;
          visit((n * s.x.h + row) * s.x.w + column, (n * s.y.h + h) * s.y.w + v, rs);
        }
}

/// Filters as [place][c][k], so that the inner loop is over neighbours.
std::vector<float> readFilter(const ConvolutionSize& size, const void* data) {
  const FilterSize& w = size.w;
  const std::vector<float> krsc = read(size, data, w.element, w.elements());
  std::vector<float> rsck(krsc.size());
  for (int64_t k = 0; k < w.k; ++k)
    for (int64_t rs = 0; rs < w.r * w.s; ++rs)
      for (int64_t c = 0; c < w.c; ++c)
        rsck[static_cast<size_t>((rs * w.c + c) * w.k + k)] =
            krsc[static_cast<size_t>((k * w.r * w.s + rs) * w.c + c)];
  return rsck;
}

void write(void* to, Element element, const std::vector<double>& values, float beta) {
  for (size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    writeNumber(to, element, at, values[i] + (beta != 0 ? beta * readNumber(to, element, at) : 0));
  }
}

}  // namespace

void convolve(const ConvolutionSize& s, const void* x, const void* w, void* y, float beta) {
  const std::vector<float> in = read(s, x, s.x.element, s.x.elements());
  const std::vector<float> filter = readFilter(s, w);
  std::vector<double> out(static_cast<size_t>(s.y.elements()));
  each(s, [&](int64_t from, int64_t to, int64_t rs) {
    for (int64_t c = 0; c < s.w.c; ++c) {
      const double value = in[static_cast<size_t>(from * s.w.c + c)];
      const float* row = filter.data() + (rs * s.w.c + c) * s.w.k;
      double* sums = out.data() + to * s.w.k;
      for (int64_t k = 0; k < s.w.k; ++k) sums[k] += value * static_cast<double>(row[k]);
    }
  });
  write(y, s.y.element, out, beta);
}

void convolveToInput(const ConvolutionSize& s, void* dx, const void* w, const void* dy, float beta) {
  const std::vector<float> gradient = read(s, dy, s.y.element, s.y.elements());
  const std::vector<float> filter = readFilter(s, w);
  std::vector<double> out(static_cast<size_t>(s.x.elements()));
  each(s, [&](int64_t to, int64_t from, int64_t rs) {
    const float* g = gradient.data() + from * s.w.k;
    for (int64_t c = 0; c < s.w.c; ++c) {
      const float* row = filter.data() + (rs * s.w.c + c) * s.w.k;
      double sum = 0;
      for (int64_t k = 0; k < s.w.k; ++k) sum += static_cast<double>(g[k]) * static_cast<double>(row[k]);
      out[static_cast<size_t>(to * s.w.c + c)] += sum;
    }
  });
  write(dx, s.x.element, out, beta);
}

void convolveToFilter(const ConvolutionSize& s, const void* x, void* dw, const void* dy, float beta) {
  const std::vector<float> in = read(s, x, s.x.element, s.x.elements());
  const std::vector<float> gradient = read(s, dy, s.y.element, s.y.elements());
  std::vector<double> out(static_cast<size_t>(s.w.elements()));
  each(s, [&](int64_t pixel, int64_t from, int64_t rs) {
    const float* row = in.data() + pixel * s.w.c;
    for (int64_t k = 0; k < s.w.k; ++k) {
      const double g = gradient[static_cast<size_t>(from * s.w.k + k)];
      double* sums = out.data() + (k * s.w.r * s.w.s + rs) * s.w.c;
      for (int64_t c = 0; c < s.w.c; ++c) sums[c] += g * static_cast<double>(row[c]);
    }
  });
  write(dw, s.w.element, out, beta);
}

}  // namespace muster::emulation
