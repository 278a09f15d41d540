// SPDX-License-Identifier: Apache-2.0
// Copies between a device, its host and its peers. Implemented by each backend.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "kernels/interfaces/device.h"
#include "runner/core/result.h"

namespace muster {

/// What moves the bytes: the device's copy engines, or a kernel that reads and writes across the link
/// (zero-copy).
enum class CopyEngine { kCopyEngine, kKernel };
const char* copyEngineName(CopyEngine engine);  ///< copy_engine, kernel
Result<CopyEngine> copyEngineFromName(std::string_view name);

/// One NUMA node of the host that has memory.
struct HostNode {
  int node = 0;
  int distance = 0;  ///< from the device as ACPI counts: 10 is its own node; 0: the host does not say
};

/// All bytes of `from` into `to`, which has as many.
struct Transfer {
  Buffer* to = nullptr;
  const Buffer* from = nullptr;
};

/// Copies of one open device. Not thread-safe.
class Copies {
 public:
  virtual ~Copies() = default;

  /// The host's NUMA nodes, the nearest to the device first.
  virtual Result<std::vector<HostNode>> hostNodes() = 0;
  /// Pinned memory of the host with all of its pages on `node` of hostNodes(), which is checked: pages
  /// elsewhere are an error. For copy(), fillPinned() and checkPinned() alone.
  virtual Result<std::unique_ptr<Buffer>> allocatePinned(uint64_t bytes, int node) = 0;
  /// Device::fillPattern() and checkPattern() for pinned memory, by the host's processors, at once.
  virtual Status fillPinned(Buffer& buffer, uint64_t pattern) = 0;
  virtual Result<Mismatch> checkPinned(const Buffer& buffer, uint64_t pattern) = 0;

  /// Lets this device and `peer`, opened from the same backend, reach each other's memory without the host
  /// between them. Whether they can; where not, copies between them are staged through the host, and kernels
  /// cannot copy.
  virtual Result<bool> connect(Device& peer) = 0;

  /// Queues all transfers side by side, between memory of this device, pinned memory, and memory of peers
  /// that connect() was called for. What the device does next waits for all of them, so Device::time() times
  /// them.
  virtual Status copy(const std::vector<Transfer>& transfers, CopyEngine engine) = 0;
};

}  // namespace muster
