// SPDX-License-Identifier: Apache-2.0
// Queues of work in order, what waits for what, and graphs of work.
#include "tests/kernels/cuda/emulation/streams.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <set>
#include <string>
#include <utility>

#include "tests/kernels/cuda/emulation/fibers.h"

using muster::emulation::Work;

struct CUgraph_st {
  std::vector<Work> work;
};
struct CUgraphExec_st {
  std::vector<Work> work;
};
struct CUstream_st {
  std::deque<Work> queued;
  uint64_t done = 0;  ///< of all that was ever queued
  cudaError_t broken = cudaSuccess;
  std::unique_ptr<CUgraph_st> capture;
};
struct CUevent_st {
  bool timed = true;
  cudaStream_t stream = nullptr;  ///< where it was recorded last, and behind how much work
  uint64_t place = 0;
  std::shared_ptr<double> seconds = std::make_shared<double>(-1);
};

namespace muster::emulation {
namespace {

constexpr unsigned kNapMicroseconds = 50;  ///< between two looks at work that waits for another process

std::set<cudaStream_t> streams;
cudaError_t lastError = cudaSuccess;
uint64_t kernels = 0;

/// Runs what can run now; cudaErrorNotReady where work waits for another process. A stream whose work failed
/// does nothing more, as a context that died.
cudaError_t advance(cudaStream_t stream, uint64_t place) {
  while (stream->done < place && stream->broken == cudaSuccess) {
    const cudaError_t code = stream->queued.front()();
    if (code == cudaErrorNotReady) return code;
    stream->queued.pop_front();
    ++stream->done;
    if (stream->broken == cudaSuccess) stream->broken = code;
  }
  return stream->broken;
}
/// Waits, for ever if need be: so does the real one.
cudaError_t runUntil(cudaStream_t stream, uint64_t place) {
  cudaError_t code = advance(stream, place);
  for (; code == cudaErrorNotReady; code = advance(stream, place)) usleep(kNapMicroseconds);
  return code;
}
uint64_t endOf(cudaStream_t stream) {
  return stream->done + stream->queued.size();
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool fits(dim3 grid, dim3 block) {
  const uint64_t threads = static_cast<uint64_t>(block.x) * block.y * block.z;
  return threads > 0 && threads <= 1024 && block.z <= 64 && grid.x > 0 && grid.x <= 0x7fffffff &&
         grid.y > 0 && grid.y <= 65535 && grid.z > 0 && grid.z <= 65535;
}

}  // namespace

void setLastError(cudaError_t code) {
  lastError = code;
}
uint64_t kernelsRun() {
  return kernels;
}
bool capturing() {
  for (cudaStream_t stream : streams)
    if (stream->capture != nullptr) return true;
  return false;
}

cudaError_t queue(cudaStream_t stream, Work work) {
  if (stream == nullptr || !streams.contains(stream)) return cudaErrorInvalidValue;
  if (stream->broken != cudaSuccess) return stream->broken;
  if (stream->capture != nullptr)
    stream->capture->work.push_back(std::move(work));
  else
    stream->queued.push_back(std::move(work));
  return cudaSuccess;
}

void queueKernel(cudaStream_t stream, dim3 grid, dim3 block, std::function<void()> kernel) {
  if (!fits(grid, block)) return setLastError(cudaErrorInvalidConfiguration);
  const cudaError_t code = queue(stream, [grid, block, kernel = std::move(kernel)] {
    const std::string problem = runGrid(grid, block, kernel);
    ++kernels;
    if (problem.empty()) return cudaSuccess;
    std::fprintf(stderr, "emulated GPU: %s\n", problem.c_str());
    return cudaErrorLaunchFailure;
  });
  if (code != cudaSuccess) setLastError(code);
}

cudaError_t finishAll() {
  cudaError_t first = cudaSuccess;
  for (cudaStream_t stream : streams) {
    const cudaError_t code = runUntil(stream, endOf(stream));
    if (first == cudaSuccess) first = code;
  }
  return first;
}

}  // namespace muster::emulation

using namespace muster::emulation;

cudaError_t cudaGetLastError() {
  return std::exchange(lastError, cudaSuccess);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = *streams.insert(new CUstream_st).first;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  // Returns at once; work that never ends keeps its stream.
  if (advance(stream, endOf(stream)) == cudaErrorNotReady) return cudaSuccess;
  streams.erase(stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (!streams.contains(stream)) return cudaErrorInvalidValue;
  if (stream->capture != nullptr) return cudaErrorStreamCaptureUnsupported;
  return runUntil(stream, endOf(stream));
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (!streams.contains(stream)) return cudaErrorInvalidValue;
  if (stream->capture != nullptr) return cudaErrorStreamCaptureUnsupported;
  return advance(stream, endOf(stream));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  *event = new CUevent_st;
  (*event)->timed = (flags & cudaEventDisableTiming) == 0;
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (!streams.contains(stream)) return cudaErrorInvalidValue;
  if (stream->capture != nullptr) return cudaErrorStreamCaptureUnsupported;  // forks in graphs: not emulated
  event->seconds = std::make_shared<double>(-1);
  const cudaError_t code = queue(stream, [seconds = event->seconds] {
    *seconds = now();
    return cudaSuccess;
  });
  event->stream = stream;
  event->place = endOf(stream);
  return code;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return event->stream == nullptr ? cudaSuccess : runUntil(event->stream, event->place);
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  if (!begin->timed || !end->timed || begin->stream == nullptr || end->stream == nullptr)
    return cudaErrorInvalidValue;
  if (*begin->seconds < 0 || *end->seconds < 0) return cudaErrorNotReady;
  *milliseconds = static_cast<float>((*end->seconds - *begin->seconds) * 1e3);
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (event->stream == nullptr) return cudaSuccess;
  return queue(stream, [other = event->stream, place = event->place] { return advance(other, place); });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (!streams.contains(stream) || stream->capture != nullptr) return cudaErrorInvalidValue;
  stream->capture = std::make_unique<CUgraph_st>();
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = stream->capture.release();
  return *graph == nullptr ? cudaErrorInvalidValue : cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  *executable = new CUgraphExec_st{graph->work};
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long flags) {
  return cudaGraphInstantiate(executable, graph, flags);
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  for (const Work& each : executable->work)
    if (const cudaError_t code = queue(stream, each); code != cudaSuccess) return code;
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}
