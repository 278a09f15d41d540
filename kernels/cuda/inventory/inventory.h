// SPDX-License-Identifier: Apache-2.0
// Inventory of the cuda backend: devices, software and health of a node with NVIDIA GPUs.
#pragma once

#include <memory>

#include "kernels/interfaces/inventory.h"

namespace muster::cuda {

/// The inventory of the running machine, through NVML and Linux. One device per GPU, "gpu<NVML index>".
/// kUnsupported: this machine has no NVIDIA GPU and no driver; a GPU without a working driver is another
/// error.
Result<std::unique_ptr<Inventory>> makeCudaInventory();

}  // namespace muster::cuda
