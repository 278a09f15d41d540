// SPDX-License-Identifier: Apache-2.0
// Memory of the host as a Buffer: shared by backend_host.so and host_blas.so.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

#include "kernels/interfaces/device.h"

namespace muster::host {

/// Pages that belong to this buffer alone.
class HostBuffer : public Buffer {
 public:
  /// Takes over a mapping of `mapped` bytes at `base`; the buffer is `bytes` at `data` inside it.
  HostBuffer(void* base, size_t mapped, void* data, uint64_t bytes)
      : base_(base), mapped_(mapped), data_(data), bytes_(bytes) {}
  ~HostBuffer() override { munmap(base_, mapped_); }
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;

  [[nodiscard]] uint64_t bytes() const override { return bytes_; }
  [[nodiscard]] void* data() const { return data_; }

 private:
  void* base_;
  size_t mapped_;
  void* data_;
  uint64_t bytes_;
};

/// The bytes of a buffer that this backend allocated. A backend's devices only ever see their own buffers.
inline std::byte* bytesOf(const Buffer& buffer) {
  return static_cast<std::byte*>(static_cast<const HostBuffer&>(buffer).data());
}

}  // namespace muster::host
