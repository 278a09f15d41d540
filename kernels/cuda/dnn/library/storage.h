// SPDX-License-Identifier: Apache-2.0
// Memory of a program on the GPU: values that live as long as it does, and gradients that share what others
// have left.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cuda/device.h"

namespace muster::cuda {

/// Hands out memory, zero at first and aligned to kAlign bytes. Everything is planned while a program is
/// compiled: when it runs, nothing is allocated.
class Storage {
 public:
  static constexpr uint64_t kAlign = 256;

  explicit Storage(CudaDevice& device) : device_(device) {}

  /// Memory for the program's whole life. Small pieces share buffers.
  Result<void*> keep(uint64_t bytes);
  /// Memory until give(), maybe used before: its content is anything.
  Result<void*> take(uint64_t bytes);
  void give(void* taken);

  [[nodiscard]] uint64_t bytes() const { return bytes_; }

 private:
  struct Piece {
    void* data = nullptr;
    uint64_t bytes = 0;
    bool free = false;
  };
  Result<std::byte*> buffer(uint64_t bytes);

  CudaDevice& device_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<Piece> pieces_;
  std::byte* chunk_ = nullptr;
  uint64_t left_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace muster::cuda
