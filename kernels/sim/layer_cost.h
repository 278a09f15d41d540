// SPDX-License-Identifier: Apache-2.0
// What a layer costs on a device that is known by two figures.
#pragma once

#include "kernels/interfaces/nn.h"

namespace muster::sim {

/// Rates of one device in one type.
struct Roofline {
  double flops = 0;    ///< FLOP/s of matrix products
  double memory = 0;   ///< B/s
  size_t element = 4;  ///< bytes of an activation
};

/// Seconds of one layer's forward pass: the longer of its arithmetic and its memory traffic (Williams,
/// Waterman, Patterson 2009). Traffic counts each operand as often as unfused kernels move it: batch
/// normalisation reads its input twice and writes it once.
double forwardSeconds(const Network& network, const Layer& layer, const Roofline& roofline);

/// The same for its backward pass: both products again, and the traffic of gradients beside that of values.
double backwardSeconds(const Network& network, const Layer& layer, const Roofline& roofline);

}  // namespace muster::sim
