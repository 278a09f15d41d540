// SPDX-License-Identifier: Apache-2.0
// What GemmSpec computes for every backend.
#include "kernels/interfaces/ops.h"

namespace muster {

double GemmSpec::flops() const {
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

}  // namespace muster
