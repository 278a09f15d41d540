// SPDX-License-Identifier: Apache-2.0
// Softmax with cross-entropy and its gradient over the classes.
#include "kernels/host/nn/loops/exponentials.h"
#include "kernels/host/nn/loops/tables.h"

namespace muster::host::MUSTER_ISA::MUSTER_STORED {
namespace {

/// The label's gradient is a difference, computed before it is rounded to what memory holds.
MUSTER_INLINE void crossEntropyRow(const CrossEntropyData& d, int64_t row) {
  const int64_t classes = d.shape.width;
  const Stored* x = stored(d.logits) + row * classes;
  Stored* g = d.gradient == nullptr ? nullptr : stored(d.gradient) + row * classes;
  const float top = largest(x, classes);
  const float sum = exponentials(x, g, classes, top, 1);
  const int64_t label = d.labels[row];
  const float logit = loadOne(x + label);
  d.losses[row] =
      std::log(static_cast<double>(sum)) - (static_cast<double>(logit) - static_cast<double>(top));
  d.right[row] = logit == top ? 1 : 0;
  if (g == nullptr) return;
  const auto rows = static_cast<float>(d.shape.rows);
  const float factor = 1.0f / (sum * rows);
  eachVectorOf(0, classes,
               [&](int64_t i, int lanes) { storeSome(g + i, loadSome(g + i, lanes) * factor, lanes); });
  const Float own = expOf(logit - top - Float{}) * factor - 1.0f / rows;
  storePart(g + label, own, 1);
}

}  // namespace

void crossEntropy(const CrossEntropyData& d) {
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < d.shape.rows; ++row) crossEntropyRow(d, row);
}

}  // namespace muster::host::MUSTER_ISA::MUSTER_STORED
