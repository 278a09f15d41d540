// SPDX-License-Identifier: Apache-2.0
// NUMA nodes of the host as a GPU sees them, and memory on one of them. Plain Linux: tested without a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/host/inventory/root.h"
#include "kernels/interfaces/copies.h"
#include "runner/core/result.h"

namespace muster::cuda {

/// Nodes that have memory which this process may use, the nearest to `ownNode` first (negative: the firmware
/// does not say where the device is; then distances are 0, unless there is but one node). A kernel without
/// NUMA has node 0.
Result<std::vector<HostNode>> hostNodes(const Root& root, int ownNode);

/// How many pages of the mapping at `address` lie on which node, from the text of /proc/self/numa_maps. Empty
/// where the mapping is not there.
std::map<int, uint64_t> pagesByNode(std::string_view numaMaps, uintptr_t address);

/// Memory of our own whose pages all lie on one node. Poisoned: all ones.
class NumaPages {
 public:
  /// Out of memory, and pages that landed elsewhere, are errors.
  static Result<NumaPages> map(uint64_t bytes, int node);
  ~NumaPages();
  NumaPages(NumaPages&& other) noexcept;
  NumaPages& operator=(NumaPages&&) = delete;
  NumaPages(const NumaPages&) = delete;

  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }  ///< at least what was asked for

 private:
  NumaPages(void* base, uint64_t mapped, void* data, uint64_t bytes)
      : base_(base), mapped_(mapped), data_(data), bytes_(bytes) {}
  void* base_;  ///< of the mapping, with forbidden pages before and after ours
  uint64_t mapped_;
  void* data_;
  uint64_t bytes_;
};

}  // namespace muster::cuda
