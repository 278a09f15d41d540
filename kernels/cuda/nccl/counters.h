// SPDX-License-Identifier: Apache-2.0
// Hardware's own counts of what it sent: network interfaces, ports of HCAs, a GPU's NVLinks.
#pragma once

#include <memory>

#include "kernels/cuda/nccl/transport.h"
#include "kernels/host/inventory/root.h"
#include "kernels/interfaces/device.h"

namespace muster::cuda {

/// Reads the counters that this machine has. One that cannot be read is left out: the transport's evidence
/// then says that nothing counted.
class LinkCounters {
 public:
  explicit LinkCounters(const DeviceInfo& gpu, Root root = Root());
  ~LinkCounters();
  LinkCounters(const LinkCounters&) = delete;
  LinkCounters& operator=(const LinkCounters&) = delete;

  [[nodiscard]] SentBytes read() const;
  /// What was sent between two readings; a counter that is not in both, or went back, is left out.
  static SentBytes between(const SentBytes& before, const SentBytes& after);

 private:
  struct Gpu;
  Root root_;
  std::unique_ptr<Gpu> gpu_;  ///< none where NVML cannot be opened
};

}  // namespace muster::cuda
