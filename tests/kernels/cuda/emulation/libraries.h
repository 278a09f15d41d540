// SPDX-License-Identifier: Apache-2.0
// What tests may change in the emulated libraries.
#pragma once

namespace muster::emulation {

/// Whether cuBLASLt has products whose epilogue sums the gradient of a bias: it has them for some types only.
void offerBiasGradients(bool offer);

}  // namespace muster::emulation
