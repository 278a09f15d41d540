// SPDX-License-Identifier: Apache-2.0
// What was measured, lane by lane, as losses against the healthy pairs.
#pragma once

#include <vector>

#include "plugins/ring/solver/baseline.h"
#include "plugins/ring/solver/round_log.h"

namespace muster::ring {

/// Whether a meeting by itself says that its pair is slow: by its only figure, or by the best of several.
inline bool isSlow(double loss, int looks, const Limits& limits) {
  return loss > (looks > 1 ? limits.slowAgain : limits.slow);
}

struct LaneFigures {
  Baseline sameLeaf;
  Baseline crossLeaf;        ///< equals sameLeaf where no topology is known
  std::vector<double> loss;  ///< by meeting; logarithms, see Baseline
  std::vector<double> sure;  ///< the same without what other processes on the hosts may account for

  /// Without what other processes may account for.
  [[nodiscard]] bool slow(const RoundLog& log, size_t meeting) const {
    const auto& [round, pair, looks] = log.meetings()[meeting];
    return isSlow(sure[meeting], looks, baseline(log.topology().crosses(pair)).limits);
  }
  [[nodiscard]] const Baseline& baseline(bool crossesLeaves) const {
    return crossesLeaves ? crossLeaf : sameLeaf;
  }
};

/// How many of the first meetings belong to the opening rounds' own pairs.
size_t openingMeetings(const RoundLog& log);

/// All lanes at once: the noise of one quantity has one shape, and the threshold counts the figures of all
/// its lanes as one family. The opening rounds' own pairs set the baselines; suspects' pairs would bias them.
std::vector<LaneFigures> readLanes(const RoundLog& log);

/// The least loss of bandwidth, as a share of the fastest pairs', that the rounds find 99 times of 100; and
/// whether noise, or other processes that slow down the fastest pairs too, make that much worse than the
/// lanes' own noise floors do: then a pair that passes says nothing.
struct Resolution {
  double loss = 0;
  bool blind = false;
};
Resolution resolutionOf(const RoundLog& log);

}  // namespace muster::ring
