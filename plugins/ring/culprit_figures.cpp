// SPDX-License-Identifier: Apache-2.0
// Splits the pairs of each rail into those of the component and the others, or the rails themselves.
#include "plugins/ring/culprit_figures.h"

#include <algorithm>
#include <map>
#include <string>

#include "runner/core/statistics.h"

namespace muster::ring {
namespace {

/// Whether a fault of the component slows what was measured of a pair. A link needs both of its nodes.
bool isOf(const Culprit& culprit, const Topology& topology, const PairFigures& figures) {
  const Pair& pair = figures.pair;
  const auto has = [&](int node) {
    return std::find(culprit.nodes.begin(), culprit.nodes.end(), node) != culprit.nodes.end();
  };
  switch (culprit.kind) {
    case Culprit::Kind::kLeafUplink:
      return topology.crosses(pair) &&
             (topology.leaf(pair.a) == culprit.leaf || topology.leaf(pair.b) == culprit.leaf);
    case Culprit::Kind::kLink:
      return has(pair.a) && has(pair.b);
    case Culprit::Kind::kRail:
      return figures.rail == culprit.rail;
    default:
      return has(pair.a) || has(pair.b);
  }
}

struct Sides {
  std::vector<double> own;
  std::vector<double> others;
};

}  // namespace

std::optional<CulpritFigures> figuresOf(const Culprit& culprit, const Topology& topology,
                                        const std::vector<PairFigures>& figures) {
  const bool isLatency = culprit.quantity == Quantity::kLatency;
  std::map<std::string, Sides> rails;
  for (const PairFigures& f : figures) {
    if (culprit.kind == Culprit::Kind::kRail && f.rail == "all") continue;
    Sides& sides = rails[culprit.kind == Culprit::Kind::kRail ? "" : f.rail];
    auto& side = isOf(culprit, topology, f) ? sides.own : sides.others;
    side.push_back(isLatency ? f.latency : std::min(f.forward, f.backward));
  }
  std::optional<CulpritFigures> worst;
  double worstShare = 0;
  for (const auto& [rail, sides] : rails) {
    const CulpritFigures found{medianOf(sides.own), medianOf(sides.others)};
    if (!(found.measured > 0) || !(found.peers > 0)) continue;
    const double share = isLatency ? found.peers / found.measured : found.measured / found.peers;
    if (worst && share >= worstShare) continue;
    worst = found;
    worstShare = share;
  }
  return worst;
}

}  // namespace muster::ring
