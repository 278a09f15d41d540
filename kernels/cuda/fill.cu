// SPDX-License-Identifier: Apache-2.0
// Kernels that fill memory: normally distributed numbers, patterns, the ring of a pointer chase.
#include "kernels/checks/pointer_chase.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/launch.h"

namespace muster::cuda {
namespace fill_cu {

constexpr int kThreads = 256;

__device__ uint64_t firstOfThread() {
  return static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ uint64_t threadsOfGrid() {
  return static_cast<uint64_t>(gridDim.x) * blockDim.x;
}

/// Writes unit after unit as `make(unit)` says; the last one byte by byte where it is cut short.
template <typename Make>
__device__ void fillUnits(std::byte* data, uint64_t bytes, Make make) {
  for (uint64_t unit = firstOfThread(); unit < unitsOf(bytes); unit += threadsOfGrid()) {
    const uint64_t count = bytesOfUnit(unit, bytes);
    const Unit value = make(unit);
    if (count == kUnitBytes)
      reinterpret_cast<Unit*>(data)[unit] = value;
    else
      storePart(data + unit * kUnitBytes, count, value);
  }
}

template <typename To>
__global__ void __launch_bounds__(kThreads) normalKernel(std::byte* data, uint64_t key, uint64_t bytes) {
  fillUnits(data, bytes, [key](uint64_t unit) { return normalUnit<To>(key, unit); });
}

__global__ void __launch_bounds__(kThreads) patternKernel(std::byte* data, PatternPart part, uint64_t bytes) {
  fillUnits(data, bytes, [part](uint64_t unit) { return patternUnit(part, unit); });
}

__global__ void __launch_bounds__(kThreads) ringKernel(std::byte* data, ChaseRing ring, uint64_t stride) {
  for (uint64_t turn = firstOfThread(); turn < ring.lines; turn += threadsOfGrid())
    *reinterpret_cast<uint64_t*>(data + ring.line(turn) * stride) = ring.line(turn + 1) * stride;
}

template <typename To>
cudaError_t fill(void* data, uint64_t seed, uint64_t bytes, int blocks, cudaStream_t stream) {
  constexpr uint64_t kElement = To::kBits < 8 ? 1 : To::kBits / 8;  // bytes
  normalKernel<To><<<blocks, kThreads, 0, stream>>>(static_cast<std::byte*>(data), normalKey(seed),
                                                    bytes / kElement * kElement);
  return cudaGetLastError();
}

}  // namespace fill_cu

using namespace fill_cu;

cudaError_t launchFillNormal(void* data, Dtype dtype, uint64_t seed, uint64_t bytes, int blocks,
                             cudaStream_t stream) {
  switch (dtype) {
    case Dtype::kF64:
      return fill<ToF64>(data, seed, bytes, blocks, stream);
    case Dtype::kF32:
    case Dtype::kTf32:
      return fill<ToF32>(data, seed, bytes, blocks, stream);
    case Dtype::kF16:
      return fill<ToF16>(data, seed, bytes, blocks, stream);
    case Dtype::kBf16:
      return fill<ToBf16>(data, seed, bytes, blocks, stream);
    case Dtype::kFp8E4m3:
      return fill<ToE4m3>(data, seed, bytes, blocks, stream);
    case Dtype::kFp8E5m2:
      return fill<ToE5m2>(data, seed, bytes, blocks, stream);
    case Dtype::kI8:
      return fill<ToI8>(data, seed, bytes, blocks, stream);
    case Dtype::kFp4:
      return fill<ToE2m1>(data, seed, bytes, blocks, stream);
  }
  return cudaErrorInvalidValue;
}

cudaError_t launchFillPattern(void* data, const PatternPart& part, uint64_t bytes, int blocks,
                              cudaStream_t stream) {
  patternKernel<<<blocks, kThreads, 0, stream>>>(static_cast<std::byte*>(data), part, bytes);
  return cudaGetLastError();
}

cudaError_t launchFillRing(void* data, uint64_t lines, uint64_t stride, uint64_t seed, int blocks,
                           cudaStream_t stream) {
  ringKernel<<<blocks, kThreads, 0, stream>>>(static_cast<std::byte*>(data), ChaseRing{lines, seed}, stride);
  return cudaGetLastError();
}

}  // namespace muster::cuda
