// SPDX-License-Identifier: Apache-2.0
// GPUs that need not be here: what cuDNN plans for, from their properties as text (gpus/*.json).
#pragma once

#include <string>
#include <vector>

#include "kernels/cuda/dnn/library/dnn_plan.h"

namespace muster::deviceless {

struct AbsentGpu {
  std::string name;  ///< "h100"
  cuda::Descriptor properties;

  [[nodiscard]] cuda::DnnTarget target(Dtype dtype, bool deterministic) const {
    return {nullptr, &properties, dtype, deterministic};
  }
};

/// a100, h100, b200 and b300. Made once; before, a driver that says "no device" takes the place of
/// libcuda.so.1. kUnsupported says why this toolkit cannot plan for them.
const Result<std::vector<AbsentGpu>>& absentGpus();

}  // namespace muster::deviceless
