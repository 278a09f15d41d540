// SPDX-License-Identifier: Apache-2.0
// What sysfs says of PCI devices and the way between two of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/host/inventory/root.h"
#include "runner/core/result.h"

namespace muster::cuda {

/// Addresses ("0000:18:00.0") of NVIDIA's GPUs: vendor 10de, class 0300 (VGA) or 0302 (3D controller).
std::vector<std::string> nvidiaGpusOnBus(const Root& root);

/// Errors that Advanced Error Reporting counted since boot.
struct AerCounts {
  int64_t correctable = 0;
  int64_t uncorrectable = 0;  ///< fatal and non-fatal
};
/// Nothing where the platform or the kernel has no such counters.
std::optional<AerCounts> readAer(const Root& root, const std::string& address);

/// The bridges from the host bridge down to the device, and the device: "pci0000:15", "0000:15:01.0", ...,
/// "0000:18:00.0". Empty where sysfs does not know the device.
std::vector<std::string> pciPath(const Root& root, const std::string& address);

/// How near two devices are, in nvidia-smi's words: PIX (one switch), PXB (several bridges), PHB (one host
/// bridge), NODE (one NUMA node), SYS.
std::string pciDistance(const std::vector<std::string>& a, int numaA, const std::vector<std::string>& b,
                        int numaB);

/// NUMA node of a device, -1 where it is not told.
int pciNumaNode(const Root& root, const std::string& address);

/// Whether the IOMMU translates what the device reads and writes (a domain of type DMA), which slows traffic
/// between devices down or breaks it; pass-through (identity) does not. Nothing without an IOMMU.
std::optional<bool> iommuTranslates(const Root& root, const std::string& address);

/// Whether a bridge's Access Control Services send requests between its ports up to the root complex. kIo:
/// only root may read that part of the configuration space.
Result<bool> redirectsPeers(const Root& root, const std::string& bridge);

}  // namespace muster::cuda
