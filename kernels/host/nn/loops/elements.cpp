// SPDX-License-Identifier: Apache-2.0
// Element by element: additions, ReLU, GELU, and to and from f32.
#include <algorithm>

#include "kernels/host/nn/loops/tables.h"

namespace muster::host::MUSTER_ISA::MUSTER_STORED {
namespace {

/// Splits `count` elements over the threads and calls body(first, lanes) for vectors and for the rest.
template <typename Body>
void eachVector(int64_t count, Body body) {
#pragma omp parallel if (count > 16384)
  {
    const Share share = shareOf((count + kLanes - 1) / kLanes);
    eachVectorOf(share.begin * kLanes, std::min(share.end * kLanes, count), body);
  }
}

/// GELU needs the normal distribution's function and density at x.
struct Normal {
  Float below;    ///< P(X < x)
  Float density;  ///< exp(-x^2 / 2) / sqrt(2 pi)
};

/// erfc(u) = t P(t) exp(-u^2) with t = 1 / (1 + u/2); P was fitted to erfc at Chebyshev's points, relative
/// error 6e-8.
MUSTER_INLINE Normal normalAt(const Float& x) {
  const Float u = (x < 0.0f ? -x : x) * 0.70710678f;
  const Float t = 1.0f / (1.0f + 0.5f * u);
  Float p = -0.0583182426f + Float{};
  for (const float c : {0.281191928f, -0.480802684f, 0.271470858f, -0.0225914243f, 0.201196663f, 0.243426815f,
                        0.282337858f, 0.282088195f})
    p = p * t + c;
  const Float e = expOf(-u * u);
  const Float tail = 0.5f * t * p * e;
  return {x < 0.0f ? tail : 1.0f - tail, e * 0.39894228f};
}

}  // namespace

void addTo(void* sum, const void* more, int64_t count) {
  Stored* y = stored(sum);
  const Stored* x = stored(more);
  eachVector(count, [&](int64_t i, int64_t lanes) {
    storeSome(y + i, loadSome(y + i, lanes) + loadSome(x + i, lanes), lanes);
  });
}

void addRow(float* sum, const void* more, int64_t width) {
  const Stored* x = stored(more);
  eachVectorOf(0, width, [&](int64_t i, int64_t lanes) {
    storeSome(sum + i, loadSome(sum + i, lanes) + loadSome(x + i, lanes), lanes);
  });
}

void embedRow(const float* token, const float* position, void* to, int64_t width) {
  Stored* y = stored(to);
  eachVectorOf(0, width, [&](int64_t i, int64_t lanes) {
    Float v = loadSome(token + i, lanes);
    if (position != nullptr) v += loadSome(position + i, lanes);
    storeSome(y + i, v, lanes);
  });
}

void rowsToF32(const void* from, int64_t stride, float* to, const Rows& shape) {
  for (int64_t row = 0; row < shape.rows; ++row) {
    const Stored* x = stored(from) + row * stride;
    float* y = to + row * shape.width;
    eachVectorOf(0, shape.width,
                 [&](int64_t i, int64_t lanes) { storeSome(y + i, loadSome(x + i, lanes), lanes); });
  }
}

void rowsFromF32(const float* from, void* to, int64_t stride, const Rows& shape) {
  for (int64_t row = 0; row < shape.rows; ++row) {
    const float* x = from + row * shape.width;
    Stored* y = stored(to) + row * stride;
    eachVectorOf(0, shape.width,
                 [&](int64_t i, int64_t lanes) { storeSome(y + i, loadSome(x + i, lanes), lanes); });
  }
}

void reluForward(void* values, int64_t count) {
  Stored* y = stored(values);
  eachVector(count, [&](int64_t i, int64_t lanes) {
    const Float v = loadSome(y + i, lanes);
    storeSome(y + i, v < 0.0f ? Float{} : v, lanes);
  });
}

void reluBackward(const void* values, void* gradient, int64_t count) {
  const Stored* y = stored(values);
  Stored* dy = stored(gradient);
  eachVector(count, [&](int64_t i, int64_t lanes) {
    const Float g = loadSome(dy + i, lanes);
    storeSome(dy + i, loadSome(y + i, lanes) <= 0.0f ? Float{} : g, lanes);
  });
}

void geluForward(const void* from, void* to, int64_t count) {
  const Stored* x = stored(from);
  Stored* y = stored(to);
  eachVector(count, [&](int64_t i, int64_t lanes) {
    const Float v = loadSome(x + i, lanes);
    storeSome(y + i, v * normalAt(v).below, lanes);
  });
}

void geluBackward(const void* from, void* gradient, int64_t count) {
  const Stored* x = stored(from);
  Stored* dy = stored(gradient);
  eachVector(count, [&](int64_t i, int64_t lanes) {
    const Float v = loadSome(x + i, lanes);
    const Normal normal = normalAt(v);
    storeSome(dy + i, loadSome(dy + i, lanes) * (normal.below + v * normal.density), lanes);
  });
}

}  // namespace muster::host::MUSTER_ISA::MUSTER_STORED
