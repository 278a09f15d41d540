// SPDX-License-Identifier: Apache-2.0
// Fills and checks collectives' buffers. Neither is timed: simple, and right for any size and alignment.
#include <algorithm>

#include "kernels/cuda/nccl/elements.h"
#include "kernels/cuda/nccl/values.h"

namespace muster::cuda {
namespace values_cu {

constexpr unsigned kThreads = 256;
constexpr uint64_t kMostBlocks = 4096;

unsigned blocksFor(uint64_t count) {
  return static_cast<unsigned>(std::clamp<uint64_t>((count + kThreads - 1) / kThreads, 1, kMostBlocks));
}

template <typename Element>
__global__ void __launch_bounds__(kThreads)
    fillInputs(typename Element::Stored* to, ExactValues values, int rank, uint64_t count) {
  const uint64_t step = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
    to[i] = Element::store(values.input(rank, i));
}

template <typename Element>
__global__ void __launch_bounds__(kThreads)
    checkReceived(const typename Element::Stored* received, CollectiveSpec spec, ExactValues values, int rank,
                  uint64_t count, WrongElements* found) {
  const uint64_t step = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  unsigned long long wrong = 0, first = ~0ull, last = 0;
  for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    if (!isWrong<Element>(received[i], spec, values, rank, i)) continue;
    if (wrong++ == 0) first = i;
    last = i;
  }
  if (wrong == 0) return;
  atomicAdd(&found->count, wrong);
  atomicMin(&found->first, first);
  atomicMax(&found->last, last);
}

}  // namespace values_cu

using namespace values_cu;

cudaError_t launchInputs(void* to, Dtype dtype, const ExactValues& values, int rank, uint64_t count,
                         cudaStream_t stream) {
  const bool known = withCollectiveElement(dtype, [&](auto element) {
    using Element = decltype(element);
    fillInputs<Element><<<blocksFor(count), kThreads, 0, stream>>>(static_cast<typename Element::Stored*>(to),
                                                                   values, rank, count);
  });
  return known ? cudaGetLastError() : cudaErrorInvalidValue;
}

cudaError_t launchCheck(const void* received, const CollectiveSpec& spec, const ExactValues& values, int rank,
                        WrongElements* found, cudaStream_t stream) {
  const uint64_t count = spec.receiveCount(values.ranks());
  const bool known = withCollectiveElement(spec.dtype, [&](auto element) {
    using Element = decltype(element);
    checkReceived<Element><<<blocksFor(count), kThreads, 0, stream>>>(
        static_cast<const typename Element::Stored*>(received), spec, values, rank, count, found);
  });
  return known ? cudaGetLastError() : cudaErrorInvalidValue;
}

}  // namespace muster::cuda
