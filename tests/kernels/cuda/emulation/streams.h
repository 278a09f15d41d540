// SPDX-License-Identifier: Apache-2.0
// Streams, events and graphs of the emulated GPUs. Work that is queued runs when the host waits for it and
// not before: a result that is read too early is not there yet, memory that is given back too early is gone.
// Events tell the time of a model in which the GPU works beside the host: work begins once it is queued and
// what is before it has ended, calls cost the host a little, and one that waits goes on a little after the
// GPU.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

namespace muster::emulation {

/// What a stream does next. cudaErrorNotReady: it waits for another process, and is to be called again.
using Work = std::function<cudaError_t()>;

/// Queues a kernel; a grid that no GPU takes becomes cudaGetLastError()'s cudaErrorInvalidConfiguration.
void queueKernel(cudaStream_t stream, dim3 grid, dim3 block, std::function<void()> kernel);
/// Queues other work, or adds it to the graph that the stream captures; `seconds`: of the model's GPU.
cudaError_t queue(cudaStream_t stream, Work work, double seconds = 1e-6);
/// Runs all that is queued on every stream, as cudaFree() waits for it.
cudaError_t finishAll();
/// Whether a stream captures a graph: calls that would wait or allocate are refused then.
bool capturing();

/// Kernels that have run, for tests which must know that something did.
uint64_t kernelsRun();

/// The error that cudaGetLastError() tells next.
void setLastError(cudaError_t code);

}  // namespace muster::emulation
