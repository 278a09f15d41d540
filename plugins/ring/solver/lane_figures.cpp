// SPDX-License-Identifier: Apache-2.0
// Figures to losses.
#include "plugins/ring/solver/lane_figures.h"
#include "runner/core/statistics.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace muster::ring {
namespace {

constexpr size_t kFewestForBaseline = 4;
/// Slow uplinks may leave few healthy pairs across: one in so many shows what the way can do.
constexpr size_t kPartAcross = 16;
constexpr double kSurely = 2.33;   ///< sigmas beyond a limit: a figure exceeds it 99 times of 100
constexpr double kUsualReach = 3;  ///< sigmas above the centre at which the fastest healthy pair may lie

/// What the figures of all lanes of one quantity have in common.
struct Family {
  Tail tail;
  size_t figures = 0;
};

/// The noise that the lane declares, or the median of what its meetings saw, whichever is more.
double noiseFloor(const RoundLog& log, size_t lane, size_t opening) {
  std::vector<double> spreads;
  for (size_t m = 0; m < opening; ++m) spreads.push_back(log.spread(m, lane));
  const double declared = log.lanes()[lane].noiseFloor;
  if (spreads.empty()) return declared;
  return std::max(declared, medianOf(spreads));
}

LaneFigures readLane(const RoundLog& log, size_t lane, size_t opening, Family& family) {
  const size_t count = log.meetings().size();
  std::vector<double> logs(count);
  std::vector<double> same, cross;
  for (size_t m = 0; m < count; ++m) {
    logs[m] = std::log(log.speed(m, lane));
    if (m < opening) (log.topology().crosses(log.meetings()[m].pair) ? cross : same).push_back(logs[m]);
  }
  LaneFigures figures;
  const double floor = noiseFloor(log, lane, opening);
  family.figures += same.size() + cross.size();
  if (same.size() < kFewestForBaseline || cross.size() < kFewestForBaseline) {
    same.insert(same.end(), cross.begin(), cross.end());
    figures.sameLeaf = figures.crossLeaf = findBaseline(std::move(same), floor);
    family.tail += figures.sameLeaf.tail;
  } else {
    figures.sameLeaf = findBaseline(std::move(same), floor);
    figures.crossLeaf = findBaseline(std::move(cross), floor, kPartAcross);
    family.tail += figures.sameLeaf.tail;
    family.tail += figures.crossLeaf.tail;
  }
  for (size_t m = 0; m < count; ++m) {
    const bool crosses = log.topology().crosses(log.meetings()[m].pair);
    const double loss = figures.baseline(crosses).center - logs[m];
    figures.loss.push_back(loss);
    figures.sure.push_back(loss - log.excuse(m, lane));
  }
  return figures;
}

/// As a logarithm: each round that measures a pair must find it slow.
double surelyFound(const Baseline& base) {
  return std::max({base.limits.slow, base.limits.slowAgain, base.limits.confirms}) + kSurely * base.sigma;
}

/// By how much the fastest opening pair is out of the reach of those that are held to be healthy: when most
/// are slowed down, they are no yardstick for all.
double fastestBeyond(const RoundLog& log, const LaneFigures& figures, const Baseline& base) {
  double beyond = 0;
  const size_t opening = openingMeetings(log);
  for (size_t m = 0; m < opening; ++m)
    if (&figures.baseline(log.topology().crosses(log.meetings()[m].pair)) == &base)
      beyond = std::max(beyond, -figures.loss[m] - kUsualReach * base.sigma);
  return beyond;
}

/// What other processes may have taken from the pairs at the centre or above: the yardstick may be too short
/// by it.
double excuseOfYardstick(const RoundLog& log, const LaneFigures& figures, const Baseline& base) {
  std::vector<double> excuses;
  const size_t opening = openingMeetings(log);
  for (size_t m = 0; m < opening; ++m)
    if (figures.loss[m] <= 0 && &figures.baseline(log.topology().crosses(log.meetings()[m].pair)) == &base)
      excuses.push_back(figures.loss[m] - figures.sure[m]);
  return excuses.empty() ? 0 : medianOf(excuses);
}

}  // namespace

size_t openingMeetings(const RoundLog& log) {
  const std::vector<Round>& opening = log.opening();
  size_t count = 0;
  size_t inRound = 0;
  for (size_t m = 0; m < log.meetings().size(); ++m) {
    const auto round = static_cast<size_t>(log.meetings()[m].round);
    if (m == 0 || log.meetings()[m - 1].round != log.meetings()[m].round) inRound = 0;
    if (round >= opening.size() || inRound++ >= opening[round].size()) break;
    ++count;
  }
  return count;
}

Resolution resolutionOf(const RoundLog& log) {
  constexpr double kHalf = 0.693;      // of the speed: whoever accepts a ring expects that it finds this
  constexpr double kMuchWorse = 1.25;  // than by the floor alone
  Resolution found;
  const std::vector<LaneFigures> lanes = readLanes(log);
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    if (log.lanes()[lane].quantity != Quantity::kBandwidth) continue;
    Baseline quiet;
    quiet.floor = quiet.sigma = quiet.seen = log.lanes()[lane].noiseFloor;
    quiet.figures = lanes[lane].sameLeaf.figures;
    quiet.limits = limitsOf(quiet, {}, static_cast<size_t>(quiet.figures));
    const double usual = surelyFound(quiet);
    for (const Baseline* base : {&lanes[lane].sameLeaf, &lanes[lane].crossLeaf}) {
      const double loss = surelyFound(*base);
      const double hidden =
          loss + excuseOfYardstick(log, lanes[lane], *base) + fastestBeyond(log, lanes[lane], *base);
      found.loss = std::max(found.loss, 1 - std::exp(-hidden));
      // Who declares so much noise does not expect that half is found.
      found.blind |= loss > std::max(kHalf, kMuchWorse * usual) || (usual <= kHalf && hidden > kHalf);
    }
  }
  return found;
}

std::vector<LaneFigures> readLanes(const RoundLog& log) {
  const size_t opening = openingMeetings(log);
  std::vector<LaneFigures> lanes;
  std::map<Quantity, Family> families;
  for (size_t lane = 0; lane < log.lanes().size(); ++lane)
    lanes.push_back(readLane(log, lane, opening, families[log.lanes()[lane].quantity]));
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    const Family& family = families[log.lanes()[lane].quantity];
    for (Baseline* base : {&lanes[lane].sameLeaf, &lanes[lane].crossLeaf})
      base->limits = limitsOf(*base, family.tail, family.figures);
  }
  return lanes;
}

}  // namespace muster::ring
