// SPDX-License-Identifier: Apache-2.0
// Memory of a GPU as a Buffer: shared by backend_cuda.so and the modules beside it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/interfaces/device.h"

namespace muster::cuda {

/// Memory that CUDA knows: from cudaMalloc() and given back at the end, or owned by a derived class.
class CudaBuffer : public Buffer {
 public:
  CudaBuffer(void* data, uint64_t bytes, bool owned = true) : data_(data), bytes_(bytes), owned_(owned) {}
  ~CudaBuffer() override {
    if (owned_) (void)cudaFree(data_);
  }
  CudaBuffer(const CudaBuffer&) = delete;
  CudaBuffer& operator=(const CudaBuffer&) = delete;

  [[nodiscard]] uint64_t bytes() const override { return bytes_; }
  [[nodiscard]] void* data() const { return data_; }

 private:
  void* data_;
  uint64_t bytes_;
  bool owned_;
};

/// The device address of a buffer that this backend allocated. A backend's devices only see their own
/// buffers.
inline std::byte* bytesOf(const Buffer& buffer) {
  return static_cast<std::byte*>(static_cast<const CudaBuffer&>(buffer).data());
}

}  // namespace muster::cuda
