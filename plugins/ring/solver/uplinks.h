// SPDX-License-Identifier: Apache-2.0
// Leaf uplinks of one lane: which are slow, and which cannot be what slows a pair across leaves.
#pragma once

#include <set>
#include <vector>

#include "plugins/ring/solver/findings.h"
#include "plugins/ring/solver/slow_pairs.h"

namespace muster::ring {

/// Evidence about an accused uplink.
struct LeafEvidence {
  double loss = 0;  ///< median of the slow pairs across
  double fine = 0;  ///< log odds that it has not the loss it is accused of
  int across = 0, slowAcross = 0;
  std::set<int> members;           ///< of the slow pairs across, who are fine inside
  std::set<int> partners, rounds;  ///< of the slow pairs across; leaves that they lead to

  [[nodiscard]] bool accuses() const;
};

/// Adds its faults and wishes to `found`. Without a topology no pair crosses leaves, and nothing is found.
class Uplinks {
 public:
  Uplinks(const RoundLog& log, const LaneFigures& figures, LaneFindings& found)
      : log_(log), figures_(figures), found_(found) {}

  /// Marks the slow pairs that an uplink explains. Those of nodes that are condemned say nothing of uplinks.
  void judge(std::vector<SlowPair>& slow, const std::set<int>& condemned);
  /// Whether a slow uplink accounts for whatever this pair shows.
  [[nodiscard]] bool explain(const Pair& pair) const;
  /// Whether the uplink of neither node's leaf can be what makes this pair slow; asks for more meetings of
  /// their leaves where that is open.
  bool cleared(const SlowPair& slow);

 private:
  bool nameWorst(const std::vector<SlowPair>& slow);
  [[nodiscard]] bool hasFineElsewhere(int leaf, double loss) const;
  void name(int leaf, const LeafEvidence& evidence);
  /// Of a node that is condemned, or of another uplink.
  [[nodiscard]] bool saysNothing(const Pair& pair) const {
    return condemned_.count(pair.a) + condemned_.count(pair.b) > 0 || explain(pair);
  }
  /// Evidence of the leaf's pairs, assuming that its uplink costs `loss`.
  [[nodiscard]] LeafEvidence collect(int leaf, double loss, const Pair* without) const;
  void wishAcross(int leaf, const std::set<int>& members);

  const RoundLog& log_;
  const LaneFigures& figures_;
  LaneFindings& found_;
  std::set<int> condemned_;
  std::set<int> badLeaves_;
  std::set<int> wishedLeaves_;
};

}  // namespace muster::ring
