// SPDX-License-Identifier: Apache-2.0
// Owners of what the CUDA runtime hands out: streams, events, memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <utility>

#include "kernels/cuda/error.h"

namespace muster::cuda {

/// Owns one handle that `kFree` gives back; movable, empty when default made. The device it belongs to need
/// not be current when it ends.
template <typename Handle, cudaError_t (*kFree)(Handle)>
class Owned {
 public:
  Owned() = default;
  explicit Owned(Handle handle) : handle_(handle) {}
  ~Owned() { reset(); }
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    if (this != &other) {
      reset();
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;

  [[nodiscard]] Handle get() const { return handle_; }

 private:
  void reset() {
    if (handle_ != nullptr) (void)kFree(handle_);  // a context that died of an error has no more to give back
    handle_ = nullptr;
  }
  Handle handle_ = nullptr;
};

using Stream = Owned<cudaStream_t, cudaStreamDestroy>;
using Event = Owned<cudaEvent_t, cudaEventDestroy>;
using DeviceMemory = Owned<void*, cudaFree>;
using PinnedMemory = Owned<void*, cudaFreeHost>;
using RegisteredMemory = Owned<void*, cudaHostUnregister>;

/// A stream of the current device that does not wait for the default one.
inline Result<Stream> makeStream() {
  cudaStream_t stream = nullptr;
  MUSTER_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return Stream(stream);
}

/// An event that tells times, or only orders streams.
inline Result<Event> makeEvent(bool timed) {
  cudaEvent_t event = nullptr;
  MUSTER_CUDA(cudaEventCreateWithFlags(&event, timed ? cudaEventDefault : cudaEventDisableTiming));
  return Event(event);
}

inline Result<DeviceMemory> makeDeviceMemory(uint64_t bytes) {
  void* data = nullptr;
  MUSTER_CUDA(cudaMalloc(&data, bytes));
  return DeviceMemory(data);
}

/// Pinned memory of the host that kernels see under the same address.
inline Result<PinnedMemory> makePinnedMemory(uint64_t bytes) {
  void* data = nullptr;
  MUSTER_CUDA(cudaHostAlloc(&data, bytes, cudaHostAllocPortable | cudaHostAllocMapped));
  return PinnedMemory(data);
}

}  // namespace muster::cuda
