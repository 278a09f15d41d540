// SPDX-License-Identifier: Apache-2.0
// The reasoning about uplinks: pairs across leaves against pairs inside one.
#include "plugins/ring/solver/uplinks.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "plugins/ring/solver/evidence.h"
#include "runner/core/statistics.h"

namespace muster::ring {
namespace {

constexpr double kUplinkShare = 0.75;  ///< of a leaf's pairs across
constexpr int kUplinkWishes = 4;
constexpr int kMostAcross = 64;  ///< meetings of a leaf, before its question is left open

}  // namespace

/// When nearly all pairs across are slow, with two leaves or more, also those of two nodes or more that are
/// fine inside the leaf.
bool LeafEvidence::accuses() const {
  return members.size() >= 2 && partners.size() >= 2 && slowAcross >= kUplinkShare * across;
}

bool Uplinks::explain(const Pair& pair) const {
  const Topology& topology = log_.topology();
  return topology.crosses(pair) &&
         (badLeaves_.count(topology.leaf(pair.a)) == 1 || badLeaves_.count(topology.leaf(pair.b)) == 1);
}

void Uplinks::judge(std::vector<SlowPair>& slow, const std::set<int>& condemned) {
  condemned_ = condemned;
  while (nameWorst(slow)) {
  }
  for (SlowPair& one : slow) one.explained |= explain(one.pair);
}

/// The uplink that has most against it: what it explains says nothing of the others.
bool Uplinks::nameWorst(const std::vector<SlowPair>& slow) {
  std::map<int, double> leastLoss;  // by leaf
  for (const SlowPair& one : slow) {
    if (!log_.topology().crosses(one.pair) || saysNothing(one.pair)) continue;
    for (int node : {one.pair.a, one.pair.b}) {
      const auto [least, fresh] = leastLoss.try_emplace(log_.topology().leaf(node), one.loss);
      if (!fresh) least->second = std::min(least->second, one.loss);
    }
  }
  int worst = -1;
  LeafEvidence most;
  for (const auto& [leaf, loss] : leastLoss) {
    const LeafEvidence t = collect(leaf, loss, nullptr);
    if (t.accuses() && hasFineElsewhere(leaf, loss) &&
        std::pair(t.members.size(), t.slowAcross) > std::pair(most.members.size(), most.slowAcross)) {
      worst = leaf;
      most = t;
    }
  }
  if (worst < 0) return false;
  name(worst, most);
  return true;
}

LeafEvidence Uplinks::collect(int leaf, double loss, const Pair* without) const {
  const Topology& topology = log_.topology();
  LeafEvidence t;
  std::vector<double> losses;
  std::set<int> slowMembers, fineInside;
  for (size_t m = 0; m < log_.meetings().size(); ++m) {
    const auto& [round, pair, looks] = log_.meetings()[m];
    const bool a = topology.leaf(pair.a) == leaf;
    const bool b = topology.leaf(pair.b) == leaf;
    if ((!a && !b) || (without != nullptr && pair == *without)) continue;
    if (saysNothing(pair)) continue;
    const double lost = figures_.loss[m];
    const bool slow = figures_.sure[m] > loss / 2;  // many pairs judge together: half is enough for each
    if (!slow && lost > loss / 2) continue;         // other processes may account for it: says neither
    if (a && b) {
      if (!slow) fineInside.insert({pair.a, pair.b});
      continue;
    }
    ++t.across;
    if (!slow) {
      t.fine += fineEvidence(loss, lost, figures_.crossLeaf.sigma);
      continue;
    }
    ++t.slowAcross;
    losses.push_back(lost);
    slowMembers.insert(a ? pair.a : pair.b);
    t.partners.insert(topology.leaf(a ? pair.b : pair.a));
    t.rounds.insert(round);
  }
  t.loss = losses.empty() ? 0 : medianOf(losses);
  std::set_intersection(slowMembers.begin(), slowMembers.end(), fineInside.begin(), fineInside.end(),
                        std::inserter(t.members, t.members.end()));
  return t;
}

/// Where all pairs across are slow, the way across is, and no uplink of it.
bool Uplinks::hasFineElsewhere(int leaf, double loss) const {
  const Topology& topology = log_.topology();
  for (size_t m = 0; m < log_.meetings().size(); ++m) {
    const Pair& pair = log_.meetings()[m].pair;
    if (topology.crosses(pair) && topology.leaf(pair.a) != leaf && topology.leaf(pair.b) != leaf &&
        figures_.loss[m] <= loss / 2)
      return true;
  }
  return false;
}

void Uplinks::name(int leaf, const LeafEvidence& t) {
  badLeaves_.insert(leaf);
  if (t.rounds.size() > 1 && t.slowAcross > 2) {
    const double strength = std::min(t.slowAcross * slowEvidence(t.loss, figures_.crossLeaf.sigma),
                                     (t.slowAcross - 1) * kSecondFault);
    found_.leaves.push_back({leaf, t.loss, strength, t.slowAcross, t.across});
    return;
  }
  wishAcross(leaf, t.members);
}

void Uplinks::wishAcross(int leaf, const std::set<int>& members) {
  if (!wishedLeaves_.insert(leaf).second) return;
  int wishes = 0;
  for (int node : members)
    if (wishes++ < kUplinkWishes) found_.wishes.push_back({Wish::Kind::kHealthyCrossLeaf, {node, -1}, 2});
}

bool Uplinks::cleared(const SlowPair& slow) {
  const Topology& topology = log_.topology();
  if (!topology.crosses(slow.pair)) return true;
  bool cleared = true;
  for (int node : {slow.pair.a, slow.pair.b}) {
    const int leaf = topology.leaf(node);
    const auto size = std::count(topology.leafOf.begin(), topology.leafOf.end(), leaf);
    const LeafEvidence t = collect(leaf, slow.loss, &slow.pair);
    const bool fine = t.fine >= kClearsOne && t.slowAcross <= (1 - kUplinkShare) * t.across;
    if (size < 2 || fine) continue;
    cleared = false;
    if (t.across > kMostAcross) continue;  // enough was asked: it stays open
    std::set<int> members;
    for (int other = 0; other < log_.nodes(); ++other)
      if (topology.leaf(other) == leaf) members.insert(other);
    wishAcross(leaf, members);
  }
  return cleared;
}

}  // namespace muster::ring
