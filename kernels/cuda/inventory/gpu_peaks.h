// SPDX-License-Identifier: Apache-2.0
// Theoretical peaks of a GPU from what NVML tells of it, for models that no profile knows.
#pragma once

#include "kernels/cuda/inventory/nvml/nvml.h"
#include "kernels/interfaces/device.h"

namespace muster::cuda {

/// Sets `peaks`, `lastLevelCacheBytes` and the fact "compute_capability". An architecture that the table
/// does not know gets no peaks: a share of a made-up figure would judge nothing.
void addPeaks(const Nvml& nvml, nvmlDevice_t device, DeviceInfo& info);

}  // namespace muster::cuda
