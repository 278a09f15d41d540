// SPDX-License-Identifier: Apache-2.0
// Splits the pairs of each rail into those of the component and the others, or the rails themselves.
#include "plugins/ring/culprit_figures.h"

#include <algorithm>
#include <map>
#include <string>

#include "runner/core/statistics.h"

namespace muster::ring {
namespace {

/// Whether a fault of the component slows what was measured of a pair.
bool isOf(const Culprit& culprit, const Topology& topology, const PairFigures& figures) {
  return culprit.kind == Culprit::Kind::kRail ? figures.rail == culprit.rail
                                              : slowsDown(culprit, figures.pair, topology);
}

struct Sides {
  std::vector<double> own;
  std::vector<double> others;
};

}  // namespace

std::optional<CulpritFigures> figuresOf(const Culprit& culprit, const std::vector<Culprit>& all,
                                        const Topology& topology, const std::vector<PairFigures>& figures) {
  const bool isLatency = culprit.quantity == Quantity::kLatency;
  const auto isOfAny = [&](const PairFigures& f) {
    return std::any_of(all.begin(), all.end(), [&](const Culprit& one) { return isOf(one, topology, f); });
  };
  std::map<std::string, Sides> rails;
  for (const PairFigures& f : figures) {
    if (culprit.kind == Culprit::Kind::kRail && f.rail == "all") continue;
    Sides& sides = rails[culprit.kind == Culprit::Kind::kRail ? "" : f.rail];
    const double figure = isLatency ? f.latency : std::min(f.forward, f.backward);
    if (isOf(culprit, topology, f))
      sides.own.push_back(figure);
    else if (!isOfAny(f))
      sides.others.push_back(figure);
  }
  std::optional<CulpritFigures> worst;
  double worstShare = 0;
  for (const auto& [rail, sides] : rails) {
    if (sides.own.empty() || sides.others.empty()) continue;
    // Of an open question one pair may be slow, and the others fine.
    const auto [least, most] = std::minmax_element(sides.own.begin(), sides.own.end());
    const double own = culprit.kind != Culprit::Kind::kUnattributable ? medianOf(sides.own)
                       : isLatency                                    ? *most
                                                                      : *least;
    const CulpritFigures found{own, medianOf(sides.others)};
    if (!(found.measured > 0) || !(found.peers > 0)) continue;
    const double share = isLatency ? found.peers / found.measured : found.measured / found.peers;
    if (worst && share >= worstShare) continue;
    worst = found;
    worstShare = share;
  }
  return worst;
}

}  // namespace muster::ring
