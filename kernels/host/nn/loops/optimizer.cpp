// SPDX-License-Identifier: Apache-2.0
// Optimizers over flat buffers: one pass over memory.
#include "kernels/host/nn/loops/tables.h"

namespace muster::host::MUSTER_ISA {

void sgd(const SgdData& d, float* p, const float* g, float* m, int64_t count, bool first) {
  const float momentum = first ? 0.0f : d.momentum;
#pragma omp parallel
  {
    const Share share = shareOf(count);
#pragma omp simd
    for (int64_t i = share.begin; i < share.end; ++i) {
      const float step = momentum * m[i] + (g[i] * d.gradientScale + d.weightDecay * p[i]);
      m[i] = step;
      p[i] -= d.learningRate * step;
    }
  }
}

void adam(const AdamData& d, float* p, const float* g, float* m, float* v, int64_t count) {
  const float rate = d.learningRate / d.correction1;
  const float root = std::sqrt(d.correction2);
#pragma omp parallel
  {
    const Share share = shareOf(count);
#pragma omp simd
    for (int64_t i = share.begin; i < share.end; ++i) {
      const float gradient = g[i] * d.gradientScale;
      m[i] = d.beta1 * m[i] + (1 - d.beta1) * gradient;
      v[i] = d.beta2 * v[i] + (1 - d.beta2) * gradient * gradient;
      const float decayed = p[i] - d.learningRate * d.weightDecay * p[i];
      p[i] = decayed - rate * m[i] / (std::sqrt(v[i]) / root + d.epsilon);
    }
  }
}

}  // namespace muster::host::MUSTER_ISA
