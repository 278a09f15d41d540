// SPDX-License-Identifier: Apache-2.0
// Element by element: additions, ReLU, GELU.
#include <algorithm>

#include "kernels/host/nn/loops/tables.h"
#include "kernels/host/nn/loops/vec.h"

namespace muster::host::MUSTER_ISA {
namespace {

/// Splits `count` elements over the threads and calls body(first, lanes) for vectors and for the rest.
template <typename Body>
void eachVector(int64_t count, Body body) {
#pragma omp parallel if (count > 16384)
  {
    const Share share = shareOf((count + kLanes - 1) / kLanes);
    const int64_t end = std::min(share.end * kLanes, count);
    int64_t i = share.begin * kLanes;
    for (; i + kLanes <= end; i += kLanes) body(i, kLanes);
    if (i < end) body(i, end - i);
  }
}

MUSTER_INLINE Float get(const float* from, int64_t lanes) {
  return lanes == kLanes ? load(from) : loadPart(from, lanes, 0);
}
MUSTER_INLINE void put(float* to, const Float& v, int64_t lanes) {
  if (lanes == kLanes)
    store(to, v);
  else
    storePart(to, v, lanes);
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

void addTo(float* y, const float* x, int64_t count) {
  eachVector(count,
             [&](int64_t i, int64_t lanes) { put(y + i, get(y + i, lanes) + get(x + i, lanes), lanes); });
}

void reluForward(float* y, int64_t count) {
  eachVector(count, [&](int64_t i, int64_t lanes) {
    const Float v = get(y + i, lanes);
    put(y + i, v < 0.0f ? Float{} : v, lanes);
  });
}

void reluBackward(const float* y, float* dy, int64_t count) {
  eachVector(count, [&](int64_t i, int64_t lanes) {
    const Float g = get(dy + i, lanes);
    put(dy + i, get(y + i, lanes) <= 0.0f ? Float{} : g, lanes);
  });
}

void geluForward(const float* x, float* y, int64_t count) {
  eachVector(count, [&](int64_t i, int64_t lanes) {
    const Float v = get(x + i, lanes);
    put(y + i, v * normalAt(v).below, lanes);
  });
}

void geluBackward(const float* x, float* dy, int64_t count) {
  eachVector(count, [&](int64_t i, int64_t lanes) {
    const Float v = get(x + i, lanes);
    const Normal normal = normalAt(v);
    put(dy + i, get(dy + i, lanes) * (normal.below + v * normal.density), lanes);
  });
}

}  // namespace muster::host::MUSTER_ISA
