// SPDX-License-Identifier: Apache-2.0
// What tests may change in the emulated libraries.
#pragma once

namespace muster::emulation {

/// Whether cuBLASLt has products whose epilogue sums the gradient of a bias: it has them for some types only.
void offerBiasGradients(bool offer);

/// What cuDNN says of graphs that are no convolution, as a cudnnStatus_t; 0: it does not support them.
void answerGraphs(int status);

}  // namespace muster::emulation
