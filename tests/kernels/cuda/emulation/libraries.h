// SPDX-License-Identifier: Apache-2.0
// What tests may change in the emulated libraries.
#pragma once

#include <cstdint>

namespace muster::emulation {

/// Whether cuBLASLt has products whose epilogue sums the gradient of a bias: it has them for some types only.
void offerBiasGradients(bool offer);

/// Copies that the runtime was ever asked for, from a GPU to the host.
uint64_t copiesToHost();
/// Products that cuBLASLt was ever asked for.
uint64_t productsQueued();
/// Flips a bit in the first element of the result of a product to come: the next one's for 1.
void spoilProduct(uint64_t after);
/// What cuDNN says of graphs that are no convolution, as a cudnnStatus_t; 0: it does not support them.
void answerGraphs(int status);

}  // namespace muster::emulation
