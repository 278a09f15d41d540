// SPDX-License-Identifier: Apache-2.0
// Which launch shape each memory kernel takes on this GPU: the one that a few timed passes show to be
// fastest.
#pragma once

#include <array>
#include <functional>
#include <optional>

#include "kernels/cuda/launch.h"
#include "runner/core/result.h"

namespace muster::cuda {

/// Candidates: whether resident blocks or one tile a block is faster, and with how many accesses in flight,
/// differs by generation.
inline constexpr std::array kStreamShapes = {StreamShape{512, 4, false}, StreamShape{1024, 2, false},
                                             StreamShape{256, 8, false}, StreamShape{512, 4, true},
                                             StreamShape{1024, 2, true}, StreamShape{256, 8, true}};

/// Below this many bytes launches and caches decide, and the first candidate is as good as any.
inline constexpr uint64_t kLeastTunedBytes = 64ull << 20;

/// Remembers the choice for each kernel.
class StreamShapes {
 public:
  /// Seconds that one pass takes in this shape.
  using Time = std::function<Result<double>(const StreamShape&)>;

  /// The shape for `op` over `bytes`; times the candidates once a kernel, when a buffer is large enough to
  /// tell.
  Result<StreamShape> choose(StreamOp op, uint64_t bytes, const Time& time);

 private:
  std::array<std::optional<StreamShape>, 4> chosen_;
};

}  // namespace muster::cuda
