// SPDX-License-Identifier: Apache-2.0
// How one GPU is set up: what does not change while stages run.
#pragma once

#include "kernels/cuda/inventory/gpu.h"

namespace muster::cuda {

/// Modes, limits, links at most, error counts of its life, processes on it, and what sysfs says of its place.
void readGpuSetup(GpuCollector& collector, const Root& root);

}  // namespace muster::cuda
