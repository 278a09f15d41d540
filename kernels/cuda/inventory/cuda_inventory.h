// SPDX-License-Identifier: Apache-2.0
// The inventory of a machine with NVIDIA GPUs, with its seams: the machine below, NVML, and CUDA's version.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/inventory/gpu.h"
#include "kernels/cuda/inventory/throttling.h"
#include "kernels/cuda/inventory/xid_watch.h"
#include "kernels/host/inventory/host_inventory.h"

namespace muster::cuda {

/// Where a CudaInventory looks.
struct CudaSources {
  HostSources host;
  std::string library = kNvmlLibrary;
  int builtFor = 0;  ///< CUDA version of this build's kernels (13000); 0: it has none, so any driver will do
};

/// Inventory and health of a machine with NVIDIA GPUs. The node's own part is HostInventory's.
class CudaInventory : public Inventory {
 public:
  static Result<std::unique_ptr<CudaInventory>> open(CudaSources sources);

  /// Lost GPUs are left out: health() reports them as `device_lost`, and node() lists them.
  Result<std::vector<DeviceInfo>> devices() override;
  Result<Json> node() override;
  Result<std::string> link(const std::string& from, const std::string& to) override;
  Result<Readings> health(double at, const std::string& load) override;
  Result<Readings> surroundings(const std::string& folder) override;
  void setLogWindow(double seconds) override { host_.setLogWindow(seconds); }
  [[nodiscard]] double logPosition() const override { return host_.logPosition(); }
  void resumeLog(double position) override { host_.resumeLog(position); }

 private:
  CudaInventory(CudaSources sources, std::shared_ptr<const Nvml> nvml, std::vector<Gpu> gpus);
  void readDevice(const Gpu& gpu, double at, Readings& out, std::vector<Absence>& absences);
  /// What the node's GPUs and their fabric's services say of it.
  void readFabrics(Readings& out);

  CudaSources sources_;
  HostInventory host_;
  std::shared_ptr<const Nvml> nvml_;
  std::vector<Gpu> gpus_;
  Throttling throttling_;
  std::unique_ptr<XidWatch> xids_;  ///< from the first health() on
};

}  // namespace muster::cuda
