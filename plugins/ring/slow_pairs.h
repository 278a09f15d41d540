// SPDX-License-Identifier: Apache-2.0
// Which pairs of a lane are slow, and which only were so once.
#pragma once

#include <vector>

#include "plugins/ring/encounters.h"
#include "plugins/ring/lane_figures.h"

namespace muster::ring {

constexpr double kSlowAgain = 3.5;  ///< sigmas that a figure must lose to confirm what another one said

/// A pair that was slow whenever it was measured.
struct SlowPair {
  Pair pair;
  double loss = 0;  ///< mean
  int times = 0;
  bool explained = false;  ///< by a node or an uplink
};

struct SlowPairs {
  std::vector<SlowPair> slow;
  std::vector<Pair> unrepeated;  ///< slow once, and not when measured again: accuses nobody
  std::vector<Pair> doubtful;    ///< looked at once, and neither good nor slow
};

SlowPairs findSlowPairs(const RoundLog& log, const Encounters& encounters, const LaneFigures& figures);

}  // namespace muster::ring
