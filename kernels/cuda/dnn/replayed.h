// SPDX-License-Identifier: Apache-2.0
// Work that is queued again and again, kept as a CUDA graph: one launch instead of hundreds.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <string>

#include "runner/core/result.h"

namespace muster::cuda {

/// Queues its work as it is the first time (libraries load their kernels then), captures it the second time,
/// and replays the graph from then on. What the work queues must not change; values that do lie in device
/// memory. Work that cannot be captured is queued as it is every time, and reason() says why.
class Replayed {
 public:
  Replayed() = default;
  ~Replayed();
  Replayed(Replayed&& other) noexcept;
  Replayed& operator=(Replayed&&) = delete;
  Replayed(const Replayed&) = delete;
  Replayed& operator=(const Replayed&) = delete;

  Status run(cudaStream_t stream, const std::function<Status()>& work);
  [[nodiscard]] bool captured() const { return graph_ != nullptr; }
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  Status capture(cudaStream_t stream, const std::function<Status()>& work);

  int runs_ = 0;
  cudaGraphExec_t graph_ = nullptr;
  std::string reason_;
};

}  // namespace muster::cuda
