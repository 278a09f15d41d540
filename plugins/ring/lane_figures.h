// SPDX-License-Identifier: Apache-2.0
// What was measured, lane by lane, as losses against the healthy pairs.
#pragma once

#include <vector>

#include "plugins/ring/baseline.h"
#include "plugins/ring/round_log.h"

namespace muster::ring {

struct LaneFigures {
  Baseline sameLeaf;
  Baseline crossLeaf;        ///< equals sameLeaf where no topology is known
  std::vector<double> loss;  ///< by meeting; logarithms, see Baseline
  std::vector<double> sure;  ///< the same without what other processes on the hosts may account for

  /// Whether the meeting by itself says that its pair is slow: by its only figure, or by the best of several.
  [[nodiscard]] bool slow(const RoundLog& log, size_t meeting) const {
    const auto& [round, pair, looks] = log.meetings()[meeting];
    const Limits& limits = baseline(log.topology().crosses(pair)).limits;
    return sure[meeting] > (looks > 1 ? limits.slowAgain : limits.slow);
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

/// How small a loss of bandwidth the opening rounds can tell from noise, as a share, and whether noise makes
/// that much worse than the lanes' own noise floors do: then a pair that passes says nothing.
struct Resolution {
  double loss = 0;
  bool blind = false;
};
Resolution resolutionOf(const RoundLog& log);

}  // namespace muster::ring
