// SPDX-License-Identifier: Apache-2.0
// Queues of work in order, what waits for what, graphs of work, and the clocks of host and GPU.
#include "tests/kernels/cuda/emulation/streams.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>
#include <string>
#include <utility>

#include "tests/kernels/cuda/emulation/fibers.h"

using muster::emulation::Work;

/// Work with the GPU's time that it takes.
struct Timed {
  Work work = {};
  double seconds = 0;
  double queuedAt = 0;                 ///< by the host's clock
  std::shared_ptr<double> stamp = {};  ///< told when it is done
  std::shared_ptr<double> after = {};  ///< when what it waits for on another stream was done
};
struct CUgraph_st {
  std::vector<Timed> work;
};
struct CUgraphExec_st {
  std::vector<Timed> work;
};
struct CUstream_st {
  std::deque<Timed> queued;
  uint64_t done = 0;  ///< of all that was ever queued
  double clock = 0;   ///< when the last of it ended
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
constexpr double kQueueing = 2e-6;         ///< seconds that a call costs the host
constexpr double kWakingUp = 20e-6;        ///< and how long after the GPU it goes on when it waited

std::set<cudaStream_t> streams;
cudaError_t lastError = cudaSuccess;
uint64_t kernels = 0;
double host = 1;  ///< the host's clock, in seconds: what it queues begins no sooner
bool lookedAtTheClock = false;

/// Runs what can run now; cudaErrorNotReady where work waits for another process. A stream whose work failed
/// does nothing more, as a context that died.
cudaError_t advance(cudaStream_t stream, uint64_t place) {
  while (stream->done < place && stream->broken == cudaSuccess) {
    const Timed& next = stream->queued.front();
    const cudaError_t code = next.work();
    if (code == cudaErrorNotReady) return code;
    const double ready = std::max(next.queuedAt, next.after == nullptr ? 0 : *next.after);
    stream->clock = std::max(stream->clock, ready) + next.seconds;
    // A kernel that looks at the clock waits for the host, which waits for the GPU now.
    if (std::exchange(lookedAtTheClock, false)) stream->clock = std::max(stream->clock, host);
    if (next.stamp != nullptr) *next.stamp = stream->clock;
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
/// The host goes on once the GPU's work is done.
void wakeUp(double workDone) {
  host = std::max(host, workDone) + kWakingUp;
}

cudaError_t queueTimed(cudaStream_t stream, Timed timed) {
  if (stream == nullptr || !streams.contains(stream)) return cudaErrorInvalidValue;
  if (stream->broken != cudaSuccess) return stream->broken;
  host += kQueueing;
  timed.queuedAt = host;
  if (stream->capture != nullptr)
    stream->capture->work.push_back(std::move(timed));
  else
    stream->queued.push_back(std::move(timed));
  return cudaSuccess;
}

bool fits(dim3 grid, dim3 block) {
  const uint64_t threads = static_cast<uint64_t>(block.x) * block.y * block.z;
  return threads > 0 && threads <= 1024 && block.z <= 64 && grid.x > 0 && grid.x <= 0x7fffffff &&
         grid.y > 0 && grid.y <= 65535 && grid.z > 0 && grid.z <= 65535;
}

}  // namespace

uint64_t nanoseconds() {
  lookedAtTheClock = true;
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

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

cudaError_t queue(cudaStream_t stream, Work work, double seconds) {
  return queueTimed(stream, {std::move(work), seconds});
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
  const cudaError_t code = runUntil(stream, endOf(stream));
  wakeUp(stream->clock);
  return code;
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
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (!streams.contains(stream)) return cudaErrorInvalidValue;
  if (stream->capture != nullptr) return cudaErrorStreamCaptureUnsupported;  // forks in graphs: not emulated
  event->seconds = std::make_shared<double>(-1);
  const cudaError_t code = queueTimed(stream, {.work = [] { return cudaSuccess; }, .stamp = event->seconds});
  event->stream = stream;
  event->place = endOf(stream);
  return code;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event->stream == nullptr) return cudaSuccess;
  const cudaError_t code = runUntil(event->stream, event->place);
  wakeUp(*event->seconds);
  return code;
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
  const auto reached = [other = event->stream, place = event->place] { return advance(other, place); };
  return queueTimed(stream, {.work = reached, .after = event->seconds});
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
  for (const Timed& each : executable->work)
    if (const cudaError_t code = queueTimed(stream, each); code != cudaSuccess) return code;
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
