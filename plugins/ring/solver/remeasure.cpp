// SPDX-License-Identifier: Apache-2.0
// Selects the pairs to remeasure within a round, because their figures are inconclusive.
#include <algorithm>

#include "plugins/ring/solver/lane_figures.h"
#include "plugins/ring/solver/solver.h"

namespace muster::ring {
namespace {

constexpr int kMostLooks = 3;  ///< at a pair in one round

/// Neither good nor slow beyond question.
bool inconclusive(const RoundLog& log, const std::vector<LaneFigures>& lanes, size_t meeting) {
  const Meeting& seen = log.meetings()[meeting];
  const bool crosses = log.topology().crosses(seen.pair);
  return std::any_of(lanes.begin(), lanes.end(), [&](const LaneFigures& lane) {
    const Limits& limits = lane.baseline(crosses).limits;
    return lane.loss[meeting] > (seen.looks == 1 ? limits.remeasure : limits.slowAgain) &&
           lane.sure[meeting] <= limits.slow;
  });
}

}  // namespace

Round pairsToRemeasure(const RoundLog& log) {
  Round again;
  if (static_cast<size_t>(log.rounds()) > log.opening().size()) return again;
  const std::vector<LaneFigures> lanes = readLanes(log);
  const size_t opening = openingMeetings(log);
  for (size_t m = 0; m < opening; ++m) {
    const Meeting& meeting = log.meetings()[m];
    if (meeting.round + 1 == log.rounds() && meeting.looks < kMostLooks && inconclusive(log, lanes, m))
      again.push_back(meeting.pair);
  }
  return again;
}

}  // namespace muster::ring
