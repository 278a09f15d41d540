// SPDX-License-Identifier: Apache-2.0
// A pair is slow when its loss is no chance, and stays so when it is measured again.
#include "plugins/ring/slow_pairs.h"

#include <algorithm>
#include <set>

namespace muster::ring {
namespace {

constexpr double kDoubtful = 0.75;  ///< of the threshold

/// All figures of one pair.
struct PairFigure {
  double sum = 0, least = 0, most = 0;
  int times = 0;

  void add(double loss) {
    sum += loss;
    least = times == 0 ? loss : std::min(least, loss);
    most = times == 0 ? loss : std::max(most, loss);
    ++times;
  }
};

}  // namespace

SlowPairs findSlowPairs(const RoundLog& log, const Encounters& encounters, const LaneFigures& figures) {
  SlowPairs found;
  std::set<std::pair<int, int>> seen;
  for (size_t m = 0; m < log.meetings().size(); ++m) {
    const Pair& pair = log.meetings()[m].pair;
    const Baseline& base = figures.baseline(log.topology().crosses(pair));
    if (figures.loss[m] <= kDoubtful * base.threshold || !seen.insert({pair.a, pair.b}).second) continue;
    PairFigure all;
    for (size_t other : encounters.of(pair.a))
      if (log.meetings()[other].pair == pair) all.add(figures.loss[other]);
    if (all.most <= base.threshold) {
      if (all.times == 1) found.doubtful.push_back(pair);
    } else if (all.least > std::max(all.most / 2, kSlowAgain * base.sigma)) {
      found.slow.push_back({pair, all.sum / all.times, all.times, false});
    } else {
      found.unrepeated.push_back(pair);
    }
  }
  return found;
}

}  // namespace muster::ring
