// SPDX-License-Identifier: Apache-2.0
// See slow_rails.h.
#include "plugins/ring/solver/slow_rails.h"

#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "plugins/ring/solver/lane_figures.h"
#include "runner/core/statistics.h"

namespace muster::ring {
namespace {

constexpr size_t kFewestRails = 3;
constexpr int kFewestNodes = 4;
constexpr double kSlowRail = 0.223;  ///< 20%: rails of one design differ less
constexpr double kMostPairs = 0.75;  ///< of the pairs must be slow, and more than half of the nodes
constexpr double kRailStays = 0.5;   ///< of its loss that such pairs must show in each later measurement

std::vector<size_t> lanesOfRails(const RoundLog& log) {
  std::vector<size_t> lanes;
  for (size_t lane = 0; lane < log.lanes().size(); ++lane)
    if (log.lanes()[lane].quantity == Quantity::kBandwidth && log.lanes()[lane].rail != "all")
      lanes.push_back(lane);
  return lanes;
}

/// What the pair loses on one rail against its other ones, without what other processes may account for.
template <typename Speed>
double lossOn(size_t rail, const std::vector<size_t>& lanes, double excuse, const Speed& speedOf) {
  std::vector<double> others;
  for (const size_t lane : lanes)
    if (lane != rail) others.push_back(std::log(speedOf(lane)));
  return medianOf(others) - std::log(speedOf(rail)) - excuse;
}

}  // namespace

std::vector<SlowRail> findSlowRails(const RoundLog& log) {
  std::vector<SlowRail> found;
  const std::vector<size_t> lanes = lanesOfRails(log);
  const size_t opening = openingMeetings(log);
  if (lanes.size() < kFewestRails || log.nodes() < kFewestNodes || opening == 0) return found;
  for (const size_t lane : lanes) {
    SlowRail rail;
    rail.rail = log.lanes()[lane].rail;
    std::vector<double> losses;
    std::set<std::pair<int, int>> slow;
    std::set<int> well;  // nodes that are not slow with one at least
    for (size_t m = 0; m < opening; ++m) {
      losses.push_back(
          lossOn(lane, lanes, log.excuse(m, lane), [&](size_t other) { return log.speed(m, other); }));
      const Pair& pair = log.meetings()[m].pair;
      if (losses.back() > kSlowRail)
        slow.emplace(pair.a, pair.b);
      else
        well.insert({pair.a, pair.b});
    }
    rail.nodes = log.nodes() - static_cast<int>(well.size());
    if (2 * rail.nodes <= log.nodes() ||
        static_cast<double>(slow.size()) < kMostPairs * static_cast<double>(losses.size()))
      continue;
    rail.loss = medianOf(losses);
    std::map<int, std::vector<double>> visits;
    for (size_t v = 0; v < log.visits().size(); ++v)
      if (const auto& [number, pair, after] = log.visits()[v]; slow.contains({pair.a, pair.b}))
        visits[number].push_back(lossOn(lane, lanes, log.visitExcuse(v, lane),
                                        [&](size_t other) { return log.visitSpeed(v, other); }));
    for (const auto& [number, lost] : visits) {
      ++rail.visits;
      rail.slowVisits += medianOf(lost) > kRailStays * rail.loss ? 1 : 0;
    }
    found.push_back(rail);
  }
  return found;
}

}  // namespace muster::ring
