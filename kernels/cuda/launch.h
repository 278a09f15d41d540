// SPDX-License-Identifier: Apache-2.0
// Our kernels as functions: each queues one launch on a stream. Pointers are the device's, aligned to 16
// bytes.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/spec/mismatch.h"
#include "kernels/spec/pattern.h"

namespace muster::cuda {

/// Blocks of the kernels that fill, check and hash, so many at most; each of the latter two writes one part.
inline constexpr int kMaxParts = 4096;

/// Fills whole elements of `bytes` with N(0,1) values (kernels/spec/normal_values.h); cudaErrorInvalidValue
/// for a dtype that has no fill.
cudaError_t launchFillNormal(void* data, Dtype dtype, uint64_t seed, uint64_t bytes, int blocks,
                             cudaStream_t stream);
cudaError_t launchFillPattern(void* data, const PatternPart& part, uint64_t bytes, int blocks,
                              cudaStream_t stream);
/// Each block leaves what it found in parts[block].
cudaError_t launchCheckPattern(const void* data, const PatternPart& part, uint64_t bytes, Mismatch* parts,
                               int blocks, cudaStream_t stream);
/// Each block adds what it found to parts[block].
cudaError_t launchCompare(const void* a, const void* b, Dtype dtype, uint64_t bytes, Mismatch* parts,
                          int blocks, cudaStream_t stream);
/// Each block leaves the sum of its words' shares in parts[block].
cudaError_t launchHash(const void* data, uint64_t bytes, uint64_t* parts, int blocks, cudaStream_t stream);

/// How a memory kernel is laid over the GPU: `unroll` 16-byte accesses in flight for each of `threads`
/// threads; `resident`: as many blocks as run at once go through the buffer, else a block does one tile and
/// ends.
struct StreamShape {
  int threads;  ///< at most 2048 / unroll
  int unroll;   ///< 2, 4 or 8
  bool resident;
};
enum class StreamOp { kRead, kWrite, kCopy, kTriad };
/// What a pass goes over: `bytes` (whole 64-bit words) of each array that the kernel has.
struct StreamArrays {
  void* a;
  const void *b, *c;
  uint64_t bytes;
  uint64_t* sink;  ///< kRead: 8 bytes that are never written in practice; they keep loads from being left out
};
cudaError_t launchStream(StreamOp op, const StreamShape& shape, const StreamArrays& at, cudaStream_t stream);

/// Holds the stream until *gate is not 0, `limit` seconds at most: what is queued meanwhile runs without
/// gaps. `gate` is pinned memory of the host.
cudaError_t launchHold(const volatile uint32_t* gate, double limit, cudaStream_t stream);

/// Writes a ring through all `lines` (a power of two) of `stride` bytes: kernels/checks/pointer_chase.h.
cudaError_t launchFillRing(void* data, uint64_t lines, uint64_t stride, uint64_t seed, int blocks,
                           cudaStream_t stream);
/// One thread follows the ring for `steps` loads from the byte offset in *place, and leaves the one it
/// reached.
cudaError_t launchChase(const void* data, uint64_t steps, uint64_t* place, cudaStream_t stream);

}  // namespace muster::cuda
