// SPDX-License-Identifier: Apache-2.0
// What one GPU is: identity, place, and the settings that an inventory lists.
#pragma once

#include "kernels/cuda/inventory/gpu.h"

namespace muster::cuda {

/// The device as plugins and profiles see it. An Error when its name, UUID, PCI address or memory cannot be
/// read; kNotFound when the GPU was lost on the way. A fact that the device lacks is left out, one that
/// cannot be read says so in NVML's words.
Result<DeviceInfo> describeGpu(const Nvml& nvml, const Gpu& gpu, const Root& root);

}  // namespace muster::cuda
