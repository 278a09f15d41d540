// SPDX-License-Identifier: Apache-2.0
// A pair is slow when its loss is no chance, and stays so when it is measured again.
#include "plugins/ring/solver/slow_pairs.h"

#include <algorithm>
#include <set>

namespace muster::ring {
namespace {

/// All rounds of one pair.
struct PairHistory {
  double sum = 0, least = 0, most = 0;
  int times = 0;
  bool slowOnce = false;      ///< one round says so by itself
  bool sure = false;          ///< even a single figure of it
  bool inconclusive = false;  ///< a round that was not remeasured left it open
  bool repeats = true;        ///< each round says slow, or confirms what another one said

  void add(double loss, int looks, const Baseline& base) {
    const bool slow = isSlow(loss, looks, base.limits);
    sum += loss;
    least = times == 0 ? loss : std::min(least, loss);
    most = times == 0 ? loss : std::max(most, loss);
    ++times;
    slowOnce |= slow;
    sure |= loss > base.limits.slow;
    inconclusive |= looks == 1 && loss > base.limits.remeasure;
    repeats &= slow || loss > base.limits.confirms;
  }
  [[nodiscard]] bool neverFine() const {
    return times == 1 ? slowOnce : (slowOnce || inconclusive) && repeats;
  }
  [[nodiscard]] bool slow() const { return neverFine() && (times == 1 || least > most / 2); }
};

}  // namespace

SlowPairs findSlowPairs(const RoundLog& log, const MeetingsByNode& meetingsByNode,
                        const LaneFigures& figures) {
  SlowPairs found;
  std::set<std::pair<int, int>> seen;
  for (size_t m = 0; m < log.meetings().size(); ++m) {
    const Pair& pair = log.meetings()[m].pair;
    const Baseline& base = figures.baseline(log.topology().crosses(pair));
    if (figures.loss[m] <= std::min(base.limits.remeasure, base.limits.slowAgain)) continue;
    if (!seen.insert({pair.a, pair.b}).second) continue;
    PairHistory all, raw;
    for (size_t other : meetingsByNode.of(pair.a)) {
      const Meeting& meeting = log.meetings()[other];
      if (!(meeting.pair == pair)) continue;
      all.add(figures.sure[other], meeting.looks, base);
      raw.add(figures.loss[other], meeting.looks, base);
    }
    if (all.slow())
      found.slow.push_back({pair, all.sum / all.times, all.times, all.sure, false});
    else if (raw.neverFine())
      found.disturbed.push_back(pair);
    else if (all.slowOnce)
      found.unrepeated.push_back(pair);
    else if (all.inconclusive && all.times == 1)
      found.inconclusive.push_back(pair);
  }
  return found;
}

}  // namespace muster::ring
