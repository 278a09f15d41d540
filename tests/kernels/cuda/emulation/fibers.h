// SPDX-License-Identifier: Apache-2.0
// Runs the threads of a grid on the CPU: block after block, the threads of a block as fibers that take turns
// at barriers. So shared memory, __syncthreads() and shuffles work as on a GPU. Every other block starts its
// threads from the last one, which shows many a barrier that is missing. For one thread of the host at a
// time.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <string>

namespace muster::emulation {

struct Thread {
  dim3 threadIndex, blockIndex, block, grid;
};
/// The one that runs; only inside of a kernel.
const Thread& currentThread();

/// __syncthreads(): waits for all threads of the block that have not ended.
void syncBlock();
/// __shfl_xor_sync(): the value of the lane whose number differs by these bits. All 32 lanes must take part.
uint32_t exchange(uint32_t lanes, uint32_t value, unsigned distance);

/// Runs a kernel for every thread of the grid. Empty, or what went wrong: threads that wait for others that
/// never come, shuffles without all lanes.
std::string runGrid(dim3 grid, dim3 block, const std::function<void()>& kernel);

}  // namespace muster::emulation
