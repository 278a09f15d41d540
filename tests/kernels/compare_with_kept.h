// SPDX-License-Identifier: Apache-2.0
// One comparison of a product's last result with the kept one, waited for.
#pragma once

#include "kernels/interfaces/ops.h"

namespace muster::testing {

inline Result<Mismatch> compareWithKept(Device& device, Gemm& gemm) {
  MUSTER_TRY(const std::unique_ptr<Tally> found, device.tally());
  MUSTER_CHECK_OK(gemm.compareWithKept(*found));
  return found->read();
}

}  // namespace muster::testing
