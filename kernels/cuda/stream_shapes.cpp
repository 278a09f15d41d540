// SPDX-License-Identifier: Apache-2.0
// Chooses launch shapes by timing them.
#include "kernels/cuda/stream_shapes.h"

#include <algorithm>
#include <limits>

namespace muster::cuda {
namespace {

constexpr int kRounds = 4;  ///< the first one warms up; of the others the fastest counts

}  // namespace

Result<StreamShape> StreamShapes::choose(StreamOp op, uint64_t bytes, const Time& time) {
  std::optional<StreamShape>& chosen = chosen_[static_cast<size_t>(op)];
  if (chosen.has_value()) return *chosen;
  if (bytes < kLeastTunedBytes) return kStreamShapes.front();
  std::array<double, kStreamShapes.size()> best{};
  best.fill(std::numeric_limits<double>::infinity());
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < kStreamShapes.size(); ++i) {
      MUSTER_TRY(double seconds, time(kStreamShapes[i]));
      if (round > 0) best[i] = std::min(best[i], seconds);
    }
  }
  chosen = kStreamShapes[static_cast<size_t>(std::min_element(best.begin(), best.end()) - best.begin())];
  return *chosen;
}

}  // namespace muster::cuda
