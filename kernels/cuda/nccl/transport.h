// SPDX-License-Identifier: Apache-2.0
// From what NCCL's log says, and what counters moved, to the transports that carried a group's bytes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernels/cuda/nccl/log.h"
#include "kernels/interfaces/communicator.h"

namespace muster::cuda {

/// Bytes that hardware counted as sent, by what counted them: "eth0", "mlx5_0:1", "nvlink".
using SentBytes = std::map<std::string, double>;

/// The transport of one of the log's connections: socket, shm, pcie-p2p, nvlink, mnnvl, ib, roce, a plugin's
/// name; "+gdr" with GPUDirect RDMA. NCCL calls NVLink and PCIe alike P2P: its graph says which. Where it
/// does not, "p2p", which is no transport that a plan can ask for.
std::string transportOf(const std::string& connection, const NcclLog& log);

/// What carried the bytes since `before`: connections made since then (NCCL connects lazily, so these were
/// used), with the bytes that their hardware counted; where none counts, `queued`, what this rank had to
/// move.
std::vector<TransportUse> transportsSince(const NcclLog& before, const NcclLog& now, const SentBytes& sent,
                                          double queued);

/// "2.28.9, 24 channels, NVLS with 16; AllReduce RING/SIMPLE (24 channels, up to 1 GiB)".
std::string describe(const NcclLog& log);

}  // namespace muster::cuda
