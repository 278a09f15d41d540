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

  [[nodiscard]] const Baseline& baseline(bool crossesLeaves) const {
    return crossesLeaves ? crossLeaf : sameLeaf;
  }
};

/// All lanes at once: the noise of one quantity has one shape, and the threshold counts the figures of all
/// its lanes as one family. The opening rounds' own pairs set the baselines; suspects' pairs would bias them.
std::vector<LaneFigures> readLanes(const RoundLog& log);

}  // namespace muster::ring
