// SPDX-License-Identifier: Apache-2.0
// Health readings of one GPU that change while stages run.
#pragma once

#include "kernels/cuda/inventory/gpu.h"

namespace muster::cuda {

/// Temperatures, power, clock, utilization, ECC counts, row remaps, PCIe link, replays and errors, NVLinks,
/// the fabric and the recovery action. XIDs are XidWatch's, throttle times Throttling's.
void readGpuHealth(GpuCollector& collector, const Root& root);

}  // namespace muster::cuda
