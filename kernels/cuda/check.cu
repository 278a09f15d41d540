// SPDX-License-Identifier: Apache-2.0
// Kernels that look at memory: against a pattern, against other memory, and its hash.
#include "kernels/cuda/elements.h"
#include "kernels/cuda/launch.h"

namespace muster::cuda {
namespace check_cu {

constexpr int kThreads = 256;

/// Combines what the block's threads found, in shared memory; thread 0 returns the whole.
template <typename T, typename Combine>
__device__ T reduceBlock(const T& mine, Combine both) {
  alignas(T) __shared__ unsigned char storage[sizeof(T) * kThreads];
  T* shared = reinterpret_cast<T*>(storage);
  shared[threadIdx.x] = mine;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) shared[threadIdx.x] = both(shared[threadIdx.x], shared[threadIdx.x + half]);
    __syncthreads();
  }
  return shared[0];
}

__device__ Mismatch reduceFound(const Mismatch& mine) {
  return reduceBlock(mine, [](const Mismatch& a, const Mismatch& b) { return combine(a, b); });
}

/// Calls visit(unit, count) for each of this thread's units, `count` being how many of its bytes there are.
template <typename Visit>
__device__ void eachUnit(uint64_t bytes, Visit visit) {
  const uint64_t step = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  for (uint64_t unit = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; unit < unitsOf(bytes);
       unit += step)
    visit(unit, bytesOfUnit(unit, bytes));
}

__device__ Unit load(const std::byte* data, uint64_t unit, uint64_t count, const Unit& rest) {
  if (count == kUnitBytes) return reinterpret_cast<const Unit*>(data)[unit];
  return loadPart(data + unit * kUnitBytes, count, rest);
}

__global__ void __launch_bounds__(kThreads)
    checkKernel(const std::byte* data, PatternPart part, uint64_t bytes, Mismatch* parts) {
  Mismatch found;
  eachUnit(bytes, [&](uint64_t unit, uint64_t count) {
    const Unit expected = patternUnit(part, unit);
    checkUnit(expected, load(data, unit, count, expected), unit, found);
  });
  const Mismatch whole = reduceFound(found);
  if (threadIdx.x == 0) parts[blockIdx.x] = whole;
}

/// Bytes past the end count as zeros on both sides, which are equal and no NaN.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    compareKernel(const std::byte* a, const std::byte* b, NanRule rule, uint64_t bytes, Mismatch* parts) {
  Mismatch found;
  eachUnit(bytes, [&](uint64_t unit, uint64_t count) {
    compareUnits<T>(load(a, unit, count, Unit{0, 0}), load(b, unit, count, Unit{0, 0}), rule, unit, found);
  });
  const Mismatch whole = reduceFound(found);
  if (threadIdx.x == 0 && whole.wrong != 0) parts[blockIdx.x] = followedBy(parts[blockIdx.x], whole);
}

__global__ void __launch_bounds__(kThreads)
    hashKernel(const std::byte* data, uint64_t bytes, uint64_t* parts) {
  uint64_t sum = 0;
  eachUnit(bytes, [&](uint64_t unit, uint64_t count) {
    sum += hashUnit(load(data, unit, count, Unit{0, 0}), unit, count);
  });
  const uint64_t whole = reduceBlock(sum, [](uint64_t a, uint64_t b) { return a + b; });
  if (threadIdx.x == 0) parts[blockIdx.x] = whole;
}

template <typename T>
cudaError_t compare(const void* a, const void* b, Dtype dtype, uint64_t bytes, Mismatch* parts, int blocks,
                    cudaStream_t stream) {
  compareKernel<T><<<blocks, kThreads, 0, stream>>>(static_cast<const std::byte*>(a),
                                                    static_cast<const std::byte*>(b), nanRule(dtype),
                                                    bytes / sizeof(T) * sizeof(T), parts);
  return cudaGetLastError();
}

}  // namespace check_cu

using namespace check_cu;

cudaError_t launchCheckPattern(const void* data, const PatternPart& part, uint64_t bytes, Mismatch* parts,
                               int blocks, cudaStream_t stream) {
  checkKernel<<<blocks, kThreads, 0, stream>>>(static_cast<const std::byte*>(data), part, bytes, parts);
  return cudaGetLastError();
}

cudaError_t launchCompare(const void* a, const void* b, Dtype dtype, uint64_t bytes, Mismatch* parts,
                          int blocks, cudaStream_t stream) {
  switch (dtype) {
    case Dtype::kF64:
      return compare<uint64_t>(a, b, dtype, bytes, parts, blocks, stream);
    case Dtype::kF32:
    case Dtype::kTf32:
      return compare<uint32_t>(a, b, dtype, bytes, parts, blocks, stream);
    case Dtype::kF16:
    case Dtype::kBf16:
      return compare<uint16_t>(a, b, dtype, bytes, parts, blocks, stream);
    case Dtype::kFp8E4m3:
    case Dtype::kFp8E5m2:
    case Dtype::kI8:
    case Dtype::kFp4:  // two a byte, compared as bytes like on every backend
      return compare<uint8_t>(a, b, dtype, bytes, parts, blocks, stream);
  }
  return cudaErrorInvalidValue;
}

cudaError_t launchHash(const void* data, uint64_t bytes, uint64_t* parts, int blocks, cudaStream_t stream) {
  hashKernel<<<blocks, kThreads, 0, stream>>>(static_cast<const std::byte*>(data), bytes, parts);
  return cudaGetLastError();
}

}  // namespace muster::cuda
