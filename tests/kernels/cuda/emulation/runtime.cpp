// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime of the emulated GPUs but for streams: devices, memory, copies.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "tests/kernels/cuda/emulation/device_code.h"
#include "tests/kernels/cuda/emulation/gpus.h"
#include "tests/kernels/cuda/emulation/libraries.h"

namespace muster::emulation {
namespace {

constexpr size_t kAlignment = 256;
constexpr int kGarbage = 0xDB;  ///< in new memory; a program must not rest on zeros

struct Memory {
  size_t bytes = 0;
  cudaMemoryType type = cudaMemoryTypeUnregistered;
  int device = 0;
};
std::map<const std::byte*, Memory> known;
int current = 0;
size_t allocated = 0;
uint64_t copies = 0;  ///< to the host

/// What the runtime knows of an address; Unregistered for plain memory of the host.
Memory memoryAt(const void* data) {
  const auto* at = static_cast<const std::byte*>(data);
  auto found = known.upper_bound(at);
  if (found == known.begin()) return {};
  --found;
  return at < found->first + found->second.bytes ? found->second : Memory{};
}

cudaError_t make(void** data, size_t bytes, cudaMemoryType type) {
  if (capturing()) return cudaErrorStreamCaptureUnsupported;
  if (bytes > kMemoryBytes - allocated) {
    setLastError(cudaErrorMemoryAllocation);
    return cudaErrorMemoryAllocation;
  }
  // Not rounded up: AddressSanitizer sees the first byte past the end.
  if (posix_memalign(data, kAlignment, std::max<size_t>(bytes, 1)) != 0) return cudaErrorMemoryAllocation;
  std::memset(*data, kGarbage, bytes);
  known[static_cast<std::byte*>(*data)] = {bytes, type, current};
  allocated += bytes;
  return cudaSuccess;
}

/// Like the real one, waits for all that was queued.
cudaError_t release(void* data, cudaMemoryType type) {
  if (data == nullptr) return cudaSuccess;
  const auto found = known.find(static_cast<std::byte*>(data));
  if (found == known.end() || found->second.type != type) return cudaErrorInvalidValue;
  const cudaError_t code = finishAll();
  allocated -= found->second.bytes;
  known.erase(found);
  std::free(data);
  return code;
}

}  // namespace

uint64_t copiesToHost() {
  return copies;
}

DeviceInfo gpuInfo(int index) {
  DeviceInfo info;
  info.index = index;
  info.id = "gpu" + std::to_string(index);
  info.kind = "gpu";
  info.name = "emulated";
  info.pciAddress = "0000:0" + std::to_string(index) + ":00.0";
  info.memoryBytes = kMemoryBytes;
  return info;
}

}  // namespace muster::emulation

using namespace muster::emulation;

cudaError_t cudaDriverGetVersion(int* version) {
  return *version = 13000, cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  return *version = 13000, cudaSuccess;
}
cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* address) {
  for (int index = 0; index < kGpus; ++index)
    if (gpuInfo(index).pciAddress == address) return *device = index, cudaSuccess;
  return cudaErrorInvalidDevice;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= kGpus) return cudaErrorInvalidDevice;
  current = device;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  return *device = current, cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {"emulated", kComputeCapability / 10, kComputeCapability % 10, kMultiprocessors};
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  if (attribute != cudaDevAttrMultiProcessorCount) return cudaErrorInvalidValue;
  return *value = kMultiprocessors, cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return *can = device != peer, cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  static bool enabled[kGpus][kGpus] = {};
  if (peer == current || peer < 0 || peer >= kGpus) return cudaErrorInvalidDevice;
  if (!enabled[current][peer]) return enabled[current][peer] = true, cudaSuccess;
  setLastError(cudaErrorPeerAccessAlreadyEnabled);
  return cudaErrorPeerAccessAlreadyEnabled;
}
const char* cudaGetErrorString(cudaError_t code) {
  return code == cudaSuccess ? "no error" : "an error of the emulated runtime";
}
const char* cudaGetErrorName(cudaError_t code) {
  static char name[32];
  std::snprintf(name, sizeof name, "cudaError %d", static_cast<int>(code));
  return name;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *total = kMemoryBytes;
  *free = kMemoryBytes - allocated;
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** data, size_t bytes) {
  return make(data, bytes, cudaMemoryTypeDevice);
}
cudaError_t cudaFree(void* data) {
  return release(data, cudaMemoryTypeDevice);
}
cudaError_t cudaHostAlloc(void** data, size_t bytes, unsigned) {
  return make(data, bytes, cudaMemoryTypeHost);
}
cudaError_t cudaFreeHost(void* data) {
  return release(data, cudaMemoryTypeHost);
}
cudaError_t cudaHostRegister(void* data, size_t bytes, unsigned) {
  if (memoryAt(data).type != cudaMemoryTypeUnregistered) {
    setLastError(cudaErrorHostMemoryAlreadyRegistered);
    return cudaErrorHostMemoryAlreadyRegistered;
  }
  known[static_cast<std::byte*>(data)] = {bytes, cudaMemoryTypeHost, current};
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* data) {
  const cudaError_t code = finishAll();
  return known.erase(static_cast<std::byte*>(data)) == 1 ? code : cudaErrorHostMemoryNotRegistered;
}
cudaError_t cudaHostGetDevicePointer(void** seen, void* data, unsigned) {
  *seen = data;
  return memoryAt(data).type == cudaMemoryTypeHost ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* data) {
  const Memory memory = memoryAt(data);
  *attributes = {memory.type, memory.device};
  return cudaSuccess;
}

/// Plain memory of the host is copied while the caller waits; what is pinned, when its turn comes.
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  copies += kind == cudaMemcpyDeviceToHost;
  if (memoryAt(from).type == cudaMemoryTypeUnregistered) {
    if (capturing()) return cudaErrorStreamCaptureUnsupported;
    const auto* first = static_cast<const std::byte*>(from);
    return queue(stream, [to, staged = std::vector<std::byte>(first, first + bytes)] {
      std::memcpy(to, staged.data(), staged.size());
      return cudaSuccess;
    });
  }
  const cudaError_t code = queue(stream, [=] {
    std::memcpy(to, from, bytes);
    return cudaSuccess;
  });
  if (code != cudaSuccess || memoryAt(to).type != cudaMemoryTypeUnregistered) return code;
  return cudaStreamSynchronize(stream);
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t toPitch, const void* from, size_t fromPitch, size_t width,
                              size_t height, cudaMemcpyKind, cudaStream_t stream) {
  return queue(stream, [=] {
    for (size_t row = 0; row < height; ++row)
      std::memcpy(static_cast<std::byte*>(to) + row * toPitch,
                  static_cast<const std::byte*>(from) + row * fromPitch, width);
    return cudaSuccess;
  });
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  if (const cudaError_t code = finishAll(); code != cudaSuccess) return code;
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* data, int value, size_t bytes, cudaStream_t stream) {
  if (memoryAt(data).type == cudaMemoryTypeUnregistered) return cudaErrorInvalidValue;
  return queue(stream, [=] {
    std::memset(data, value, bytes);
    return cudaSuccess;
  });
}
