// SPDX-License-Identifier: Apache-2.0
// A GPU's place in the NVLink fabric, as the driver tells it.
#pragma once

#include <string>

#include "kernels/cuda/inventory/nvml/nvml.h"

namespace muster::cuda {

/// By the newest form of the call that this driver knows.
Answer<nvmlGpuFabricInfo_v3_t> readFabricInfo(const Nvml& nvml, nvmlDevice_t device);

/// "CLUSTER.CLIQUE", of which GPUs that reach each other have the same; empty until the GPU is admitted.
std::string cliqueOf(const nvmlGpuFabricInfo_v3_t& fabric);

/// Whether the fabric is one of several nodes (GB200 NVL72): its cluster has an id.
bool spansNodes(const nvmlGpuFabricInfo_v3_t& fabric);

}  // namespace muster::cuda
