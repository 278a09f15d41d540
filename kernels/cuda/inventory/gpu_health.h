// SPDX-License-Identifier: Apache-2.0
// Health readings of one GPU that change while stages run.
#pragma once

#include "kernels/cuda/inventory/gpu.h"

namespace muster::cuda {

/// Temperatures, power, clock, utilization, throttle times, ECC counts, row remaps, PCIe link, replays and
/// errors, NVLinks and the fabric. XIDs are XidWatch's.
void readGpuHealth(GpuCollector& collector, const Root& root);

}  // namespace muster::cuda
