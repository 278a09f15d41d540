// SPDX-License-Identifier: Apache-2.0
// The memory kernels (read, write, copy, triad), the pointer chase, and the kernel that holds a stream.
#include <algorithm>

#include "kernels/cuda/elements.h"
#include "kernels/cuda/launch.h"
#include "kernels/spec/memory_values.h"

namespace muster::cuda {
namespace stream_cu {

using Pair = double2;  // 16 bytes: one vector access

/// What each memory kernel loads for one pair, and the pair that it makes of it. Loads and stores are marked as
/// used once: none of it is worth a place in the cache.
struct Read {
  static constexpr bool kStores = false;
  using Loaded = Pair;
  static __device__ Loaded load(const Pair* a, const Pair*, const Pair*, uint64_t i) { return __ldcs(a + i); }
  static __device__ Pair value(const Loaded& loaded) { return loaded; }
};
struct Write {
  static constexpr bool kStores = true;
  struct Loaded {};
  static __device__ Loaded load(const Pair*, const Pair*, const Pair*, uint64_t) { return {}; }
  static __device__ Pair value(const Loaded&) { return {kWriteValue, kWriteValue}; }
};
struct Copy {
  static constexpr bool kStores = true;
  using Loaded = Pair;
  static __device__ Loaded load(const Pair*, const Pair* b, const Pair*, uint64_t i) { return __ldcs(b + i); }
  static __device__ Pair value(const Loaded& loaded) { return loaded; }
};
struct Triad {
  static constexpr bool kStores = true;
  struct Loaded {
    Pair b, c;
  };
  static __device__ Loaded load(const Pair*, const Pair* b, const Pair* c, uint64_t i) {
    return {__ldcs(b + i), __ldcs(c + i)};
  }
  static __device__ Pair value(const Loaded& loaded) {
    return {fma(kTriadScalar, loaded.c.x, loaded.b.x), fma(kTriadScalar, loaded.c.y, loaded.b.y)};
  }
};

/// Folds the bits of what was read, so that no load can be left out.
__device__ uint64_t fold(uint64_t sum, const Pair& value) {
  return sum ^ static_cast<uint64_t>(__double_as_longlong(value.x)) ^
         static_cast<uint64_t>(__double_as_longlong(value.y)) * 3;
}

/// kUnroll accesses of a thread to each array. All loads come before the first use, which waits for what it
/// uses: without conditions between them, which lead the compiler to use each value before it loads the next.
template <typename Op, int kUnroll, bool kWhole>
__device__ uint64_t streamTile(Pair* a, const Pair* b, const Pair* c, uint64_t first, uint64_t pairs) {
  typename Op::Loaded loaded[kUnroll];
#pragma unroll
  for (int j = 0; j < kUnroll; ++j) {
    const uint64_t i = first + static_cast<uint64_t>(j) * blockDim.x;
    if (kWhole || i < pairs) loaded[j] = Op::load(a, b, c, i);
  }
  uint64_t sum = 0;
#pragma unroll
  for (int j = 0; j < kUnroll; ++j) {
    const uint64_t i = first + static_cast<uint64_t>(j) * blockDim.x;
    if (!kWhole && i >= pairs) continue;
    if constexpr (Op::kStores)
      __stcs(a + i, Op::value(loaded[j]));
    else
      sum = fold(sum, Op::value(loaded[j]));
  }
  return sum;
}

/// Tiles of kUnroll * blockDim.x pairs: a thread has kUnroll accesses to each array in flight, neighbours' ones
/// lie side by side. The last tile may be cut short.
template <typename Op, int kUnroll>
__global__ void __launch_bounds__(2048 / kUnroll)
    streamKernel(Pair* a, const Pair* b, const Pair* c, uint64_t pairs, uint64_t* sink) {
  const uint64_t tile = static_cast<uint64_t>(blockDim.x) * kUnroll;
  uint64_t sum = 0;
  for (uint64_t base = blockIdx.x * tile; base < pairs; base += gridDim.x * tile) {
    const uint64_t first = base + threadIdx.x;
    sum ^= base + tile <= pairs ? streamTile<Op, kUnroll, true>(a, b, c, first, pairs)
                                : streamTile<Op, kUnroll, false>(a, b, c, first, pairs);
  }
  if constexpr (!Op::kStores) {
    if (sum == 0x6d75737465722121u) *sink = sum;  // one in 2^64
  }
}

/// The last word of a buffer that is no whole number of pairs.
template <typename Op>
__global__ void lastWordKernel(double* a, const double* b, const double* c, uint64_t word, uint64_t* sink) {
  if constexpr (!Op::kStores) {
    if (a[word] == 0x1.6d75737465722p+77) *sink = word;
  } else {
    a[word] = std::is_same_v<Op, Write>  ? kWriteValue
              : std::is_same_v<Op, Copy> ? b[word]
                                         : fma(kTriadScalar, c[word], b[word]);
  }
}

/// Blocks that fill the GPU once, or one for each tile.
template <typename Op, int kUnroll>
cudaError_t gridOf(const StreamShape& shape, uint64_t pairs, unsigned& blocks) {
  const uint64_t tile = static_cast<uint64_t>(shape.threads) * kUnroll;
  const uint64_t tiles = std::clamp<uint64_t>((pairs + tile - 1) / tile, 1, 0x7fffffff);
  blocks = static_cast<unsigned>(tiles);
  if (!shape.resident) return cudaSuccess;
  int device = 0, processors = 0, perProcessor = 0;
  cudaError_t code = cudaGetDevice(&device);
  if (code == cudaSuccess) code = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (code == cudaSuccess)
    code = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&perProcessor, streamKernel<Op, kUnroll>,
                                                         shape.threads, 0);
  if (code == cudaSuccess)
    blocks = static_cast<unsigned>(
        std::clamp<uint64_t>(static_cast<uint64_t>(processors) * perProcessor, 1, tiles));
  return code;
}

template <typename Op, int kUnroll>
cudaError_t stream(const StreamShape& shape, const StreamArrays& at, cudaStream_t queue) {
  const uint64_t pairs = at.bytes / sizeof(Pair);
  if (pairs > 0) {
    unsigned blocks = 0;
    if (const cudaError_t code = gridOf<Op, kUnroll>(shape, pairs, blocks); code != cudaSuccess) return code;
    streamKernel<Op, kUnroll>
        <<<blocks, shape.threads, 0, queue>>>(static_cast<Pair*>(at.a), static_cast<const Pair*>(at.b),
                                              static_cast<const Pair*>(at.c), pairs, at.sink);
  }
  if (at.bytes % sizeof(Pair) != 0)
    lastWordKernel<Op><<<1, 1, 0, queue>>>(static_cast<double*>(at.a), static_cast<const double*>(at.b),
                                           static_cast<const double*>(at.c), pairs * 2, at.sink);
  return cudaGetLastError();
}

template <typename Op>
cudaError_t streamOf(const StreamShape& shape, const StreamArrays& at, cudaStream_t queue) {
  if (shape.unroll == 2) return stream<Op, 2>(shape, at, queue);
  if (shape.unroll == 4) return stream<Op, 4>(shape, at, queue);
  if (shape.unroll == 8) return stream<Op, 8>(shape, at, queue);
  return cudaErrorInvalidValue;
}

__device__ uint64_t nanoseconds() {
  uint64_t now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void holdKernel(const volatile uint32_t* gate, uint64_t limit) {
  const uint64_t end = nanoseconds() + limit;
  while (*gate == 0 && nanoseconds() < end) __nanosleep(200);
}

/// Loads past the first-level cache: the latency of the memory is asked for, not that of the processor's own
/// cache.
__global__ void chaseKernel(const std::byte* data, uint64_t steps, uint64_t* place) {
  uint64_t at = *place;
  for (uint64_t i = 0; i < steps; ++i) at = __ldcg(reinterpret_cast<const unsigned long long*>(data + at));
  *place = at;
}

}  // namespace stream_cu

using namespace stream_cu;

cudaError_t launchStream(StreamOp op, const StreamShape& shape, const StreamArrays& at, cudaStream_t stream) {
  switch (op) {
    case StreamOp::kRead:
      return streamOf<Read>(shape, at, stream);
    case StreamOp::kWrite:
      return streamOf<Write>(shape, at, stream);
    case StreamOp::kCopy:
      return streamOf<Copy>(shape, at, stream);
    case StreamOp::kTriad:
      return streamOf<Triad>(shape, at, stream);
  }
  return cudaErrorInvalidValue;
}

cudaError_t launchHold(const volatile uint32_t* gate, double limit, cudaStream_t stream) {
  holdKernel<<<1, 1, 0, stream>>>(gate, static_cast<uint64_t>(limit * 1e9));
  return cudaGetLastError();
}

cudaError_t launchChase(const void* data, uint64_t steps, uint64_t* place, cudaStream_t stream) {
  chaseKernel<<<1, 1, 0, stream>>>(static_cast<const std::byte*>(data), steps, place);
  return cudaGetLastError();
}

}  // namespace muster::cuda
