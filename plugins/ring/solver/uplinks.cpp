// SPDX-License-Identifier: Apache-2.0
// The reasoning about uplinks: pairs across leaves against pairs inside one.
#include "plugins/ring/solver/uplinks.h"

#include <algorithm>
#include <map>

#include "plugins/ring/solver/evidence.h"

namespace muster::ring {
namespace {

constexpr double kUplinkShare = 0.75;  ///< of a leaf's pairs across
constexpr int kUplinkWishes = 4;
constexpr int kMostAcross = 64;  ///< meetings of a leaf, before its question is left open

}  // namespace

bool Uplinks::explain(const Pair& pair) const {
  const Topology& topology = log_.topology();
  return topology.crosses(pair) &&
         (badLeaves_.count(topology.leaf(pair.a)) == 1 || badLeaves_.count(topology.leaf(pair.b)) == 1);
}

void Uplinks::judge(std::vector<SlowPair>& slow, const std::set<int>& condemned) {
  condemned_ = condemned;
  std::map<int, double> leastLoss;  // by leaf
  for (const SlowPair& one : slow) {
    if (!log_.topology().crosses(one.pair)) continue;
    for (int node : {one.pair.a, one.pair.b}) {
      const auto [least, fresh] = leastLoss.try_emplace(log_.topology().leaf(node), one.loss);
      if (!fresh) least->second = std::min(least->second, one.loss);
    }
  }
  for (const auto& [leaf, loss] : leastLoss)
    if (badLeaves_.count(leaf) == 0) judgeLeaf(leaf, loss);
  for (SlowPair& one : slow) one.explained |= explain(one.pair);
}

LeafEvidence Uplinks::collect(int leaf, double loss, const Pair* without) const {
  const Topology& topology = log_.topology();
  LeafEvidence t;
  double sum = 0;
  for (size_t m = 0; m < log_.meetings().size(); ++m) {
    const auto& [round, pair, looks] = log_.meetings()[m];
    const bool a = topology.leaf(pair.a) == leaf;
    const bool b = topology.leaf(pair.b) == leaf;
    if ((!a && !b) || (without != nullptr && pair == *without)) continue;
    if (condemned_.count(pair.a) + condemned_.count(pair.b) > 0) continue;
    const double lost = figures_.loss[m];
    const bool slow = figures_.sure[m] > loss / 2;  // many pairs judge together: half is enough for each
    if (!slow && lost > loss / 2) continue;         // other processes may account for it: says neither
    if (a && b) {
      ++t.inside;
      t.slowInside += slow ? 1 : 0;
      continue;
    }
    ++t.across;
    if (!slow) {
      t.fine += fineEvidence(loss, lost, figures_.crossLeaf.sigma);
      continue;
    }
    ++t.slowAcross;
    sum += lost;
    t.members.insert(a ? pair.a : pair.b);
    t.partners.insert(topology.leaf(a ? pair.b : pair.a));
    t.rounds.insert(round);
  }
  t.loss = t.slowAcross > 0 ? sum / t.slowAcross : 0;
  return t;
}

/// An uplink is to blame when nearly all pairs across are slow, of two nodes or more and with two leaves or
/// more, while pairs inside the leaf are fine.
void Uplinks::judgeLeaf(int leaf, double loss) {
  const LeafEvidence t = collect(leaf, loss, nullptr);
  if (t.members.size() < 2 || t.partners.size() < 2 || t.inside == 0) return;
  if (t.slowAcross < kUplinkShare * t.across || t.slowInside > (1 - kUplinkShare) * t.inside) return;
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
