// SPDX-License-Identifier: Apache-2.0
// Facts about the node around the GPUs: how RDMA reaches their memory, and the ways between GPUs and NICs.
#pragma once

#include <string>
#include <vector>

#include "kernels/cuda/inventory/gpu.h"
#include "runner/core/json.h"
#include "runner/core/result.h"

namespace muster::cuda {

/// How an RDMA device can reach GPU memory: "nvidia_peermem", "dma-buf" (the open kernel modules), "none".
std::string gpuDirectRdma(const Root& root);

/// For each GPU its place, and the distance of every other GPU, network interface and RDMA device by PCI:
/// [{"device": "gpu0", "bus_address", "numa_node", "near": {"gpu1": "PXB", "mlx5_0": "PIX"}}]. The nodes of a
/// fleet are to have it all alike.
Json pciTopology(const Root& root, const std::vector<Gpu>& gpus);

/// What carries copies between two GPUs: Inventory::link().
Result<std::string> linkBetween(const Nvml& nvml, const Root& root, const Gpu& a, const Gpu& b);

/// Whether each GPU's VBIOS is that of most GPUs of the same name on this node; nothing for a GPU that does
/// not tell. Readings `vbios_differs`.
void compareVbios(const Nvml& nvml, const std::vector<Gpu>& gpus, Readings& out);

/// The same of its cluster and clique in the NVLink fabric: `fabrics` are those of `gpus`. Readings
/// `fabric_clique_differs`.
void compareCliques(const std::vector<Gpu>& gpus, const std::vector<nvmlGpuFabricInfo_v3_t>& fabrics,
                    Readings& out);

}  // namespace muster::cuda
