// SPDX-License-Identifier: Apache-2.0
// Memory of a program: values that live as long as it does, and gradients that share what others have left.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/interfaces/device.h"

namespace muster::host {

/// Hands out memory in units of f32, zero and aligned to cache lines. Everything is planned while a program
/// is compiled: when it runs, nothing is allocated.
class Storage {
 public:
  explicit Storage(Device& device) : device_(device) {}

  /// Memory for the program's whole life. Small pieces share pages.
  Result<float*> keep(uint64_t elements);
  /// Memory until give(), maybe used before: its content is anything.
  Result<float*> take(uint64_t elements);
  void give(const void* taken);

  [[nodiscard]] uint64_t bytes() const { return bytes_; }

 private:
  struct Piece {
    float* data = nullptr;
    uint64_t elements = 0;
    bool free = false;
  };
  Result<float*> buffer(uint64_t bytes);

  Device& device_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<Piece> pieces_;
  float* chunk_ = nullptr;
  uint64_t left_ = 0;  ///< elements
  uint64_t bytes_ = 0;
};

}  // namespace muster::host
