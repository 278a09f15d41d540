// SPDX-License-Identifier: Apache-2.0
// Capturing and replaying CUDA graphs.
#include "kernels/cuda/dnn/replayed.h"

#include <utility>

#include "kernels/cuda/error.h"

namespace muster::cuda {

Replayed::~Replayed() {
  if (graph_ != nullptr) (void)cudaGraphExecDestroy(graph_);
}

Replayed::Replayed(Replayed&& other) noexcept
    : runs_(other.runs_), graph_(std::exchange(other.graph_, nullptr)), reason_(std::move(other.reason_)) {}

Status Replayed::capture(cudaStream_t stream, const std::function<Status()>& work) {
  MUSTER_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  const Status queued = work();
  cudaGraph_t graph = nullptr;
  // A capture must be ended even where its work failed.
  const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
  if (!queued.ok() || ended != cudaSuccess) (void)cudaGetLastError();
  cudaError_t made = ended;
  if (queued.ok() && ended == cudaSuccess) made = cudaGraphInstantiate(&graph_, graph, 0);
  if (graph != nullptr) (void)cudaGraphDestroy(graph);
  MUSTER_CHECK_OK(queued);
  MUSTER_CUDA(made);
  return {};
}

Status Replayed::run(cudaStream_t stream, const std::function<Status()>& work) {
  if (runs_ == 1) {
    const Status status = capture(stream, work);
    if (!status.ok()) {
      graph_ = nullptr;
      reason_ = status.error().text();
    }
  }
  if (runs_ < 2) ++runs_;
  if (graph_ == nullptr) return work();
  MUSTER_CUDA(cudaGraphLaunch(graph_, stream));
  return {};
}

}  // namespace muster::cuda
