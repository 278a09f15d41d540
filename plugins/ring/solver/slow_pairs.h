// SPDX-License-Identifier: Apache-2.0
// Finds the slow pairs of a lane, and those that were slow only once.
#pragma once

#include <vector>

#include "plugins/ring/solver/lane_figures.h"
#include "plugins/ring/solver/meetings_by_node.h"

namespace muster::ring {

/// A pair that was slow whenever it was measured.
struct SlowPair {
  Pair pair;
  double loss = 0;         ///< mean
  int times = 0;           ///< rounds that measured it
  bool sure = false;       ///< a single figure of a round proves it, not only all its figures together
  bool explained = false;  ///< by a node or an uplink

  /// Noise that lasts for a round is in all its figures: if no single figure proves it, three rounds must
  /// agree.
  [[nodiscard]] bool settled() const { return times > (sure ? 1 : 2); }
};

struct SlowPairs {
  std::vector<SlowPair> slow;
  std::vector<Pair> unrepeated;    ///< slow once, and not when measured again: accuses nobody
  std::vector<Pair> inconclusive;  ///< measured once, neither good nor slow
  std::vector<Pair> disturbed;     ///< slow each time, but other processes on the hosts may account for it
};

SlowPairs findSlowPairs(const RoundLog& log, const MeetingsByNode& meetingsByNode,
                        const LaneFigures& figures);

}  // namespace muster::ring
