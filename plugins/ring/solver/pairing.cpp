// SPDX-License-Identifier: Apache-2.0
// The opening rounds, with and without a topology.
#include "plugins/ring/solver/pairing.h"

#include <algorithm>
#include <set>

namespace muster::ring {
namespace {

std::vector<Round> plainRing(int nodes) {
  std::vector<Round> rounds(nodes % 2 == 0 ? 2 : 3);
  for (int i = 0; i + 1 < nodes; ++i) rounds[static_cast<size_t>(i % 2)].push_back({i, i + 1});
  rounds.back().push_back({0, nodes - 1});
  return rounds;
}

std::vector<std::vector<int>> membersOf(int nodes, const Topology& topology) {
  std::vector<std::vector<int>> members(topology.names.size());
  for (int node = 0; node < nodes; ++node) members[static_cast<size_t>(topology.leaf(node))].push_back(node);
  return members;
}

/// Neighbours of one leaf; those left over by odd leaves meet each other.
Round sameLeafRound(const std::vector<std::vector<int>>& members) {
  Round round;
  std::vector<int> left;
  for (const auto& leaf : members) {
    for (size_t i = 0; i + 1 < leaf.size(); i += 2) round.push_back(makePair(leaf[i], leaf[i + 1]));
    if (leaf.size() % 2 == 1) left.push_back(leaf.back());
  }
  for (size_t i = 0; i + 1 < left.size(); i += 2) round.push_back(makePair(left[i], left[i + 1]));
  return round;
}

/// Pairs across leaves. The fullest leaf is served first, so that none is left with only itself while that
/// can be avoided; among its equals it takes the leaf that it has met least.
class CrossLeafRound {
 public:
  explicit CrossLeafRound(std::vector<std::vector<int>> members)
      : free_(std::move(members)), met_(free_.size() * free_.size()) {
    for (auto& leaf : free_) std::reverse(leaf.begin(), leaf.end());
  }

  Round build() {
    for (;;) {
      const size_t first = fullest(free_.size());
      if (first == free_.size()) return round_;
      const size_t second = fullest(first);
      if (second == free_.size()) {
        pairWithin(free_[first]);
        return round_;
      }
      ++met_[first * free_.size() + second];
      ++met_[second * free_.size() + first];
      round_.push_back(makePair(take(first), take(second)));
    }
  }

 private:
  [[nodiscard]] int metCount(size_t a, size_t b) const { return met_[a * free_.size() + b]; }
  /// The leaf with most free nodes beside `other`; the number of leaves where none has any.
  [[nodiscard]] size_t fullest(size_t other) const {
    size_t best = free_.size();
    for (size_t leaf = 0; leaf < free_.size(); ++leaf) {
      if (leaf == other || free_[leaf].empty()) continue;
      if (best == free_.size() || free_[leaf].size() > free_[best].size() ||
          (free_[leaf].size() == free_[best].size() && other < free_.size() &&
           metCount(other, leaf) < metCount(other, best)))
        best = leaf;
    }
    return best;
  }
  int take(size_t leaf) {
    const int node = free_[leaf].back();
    free_[leaf].pop_back();
    return node;
  }
  /// What is left belongs to one leaf: nodes two places apart, which the first round did not pair.
  void pairWithin(const std::vector<int>& left) {
    const size_t half = left.size() / 2;
    for (size_t i = 0; i < half; ++i) round_.push_back(makePair(left[i], left[i + half]));
  }

  std::vector<std::vector<int>> free_;
  std::vector<int> met_;  ///< how often leaf met leaf, as a matrix
  Round round_;
};

/// Exchanges partners where `round` repeats a pair of `earlier`: meeting the same node twice tells nothing
/// new.
void avoidRepeats(const Round& earlier, Round& round) {
  std::set<std::pair<int, int>> known;
  for (const Pair& p : earlier) known.insert({p.a, p.b});
  const auto repeats = [&](const Pair& p) { return known.count({p.a, p.b}) == 1; };
  for (Pair& pair : round) {
    if (!repeats(pair)) continue;
    for (Pair& other : round) {
      const Pair left = makePair(pair.a, other.a);
      const Pair right = makePair(pair.b, other.b);
      if (&other == &pair || repeats(left) || repeats(right)) continue;
      pair = left;
      other = right;
      break;
    }
  }
}

/// The node that no pair of the round has, or -1.
int idleNode(int nodes, const Round& round) {
  std::vector<bool> busy(static_cast<size_t>(nodes));
  for (const Pair& pair : round) busy[static_cast<size_t>(pair.a)] = busy[static_cast<size_t>(pair.b)] = true;
  const auto it = std::find(busy.begin(), busy.end(), false);
  return it == busy.end() ? -1 : static_cast<int>(it - busy.begin());
}

/// An odd number of nodes: those that sat out the first and the second round meet in a third.
void closeOddRing(int nodes, std::vector<Round>& rounds) {
  const int first = idleNode(nodes, rounds[0]);
  int second = idleNode(nodes, rounds[1]);
  if (first == second) {
    // The same node sat out twice: it takes a place of the second round, and whom it ousts goes to the third.
    Pair& pair = rounds[1].front();
    second = pair.b;
    pair = makePair(pair.a, first);
  }
  rounds.push_back({makePair(first, second)});
}

}  // namespace

Pair makePair(int x, int y) {
  return x < y ? Pair{x, y} : Pair{y, x};
}

bool isBelow(int node, int other, int nodes) {
  return 2 * ((node - other + nodes) % nodes) < nodes;
}

std::vector<Round> openingRounds(int nodes, const Topology& topology) {
  if (nodes < 2) return {};
  if (nodes == 2) return {{{0, 1}}};
  if (!topology.known() || nodes == 3) return plainRing(nodes);
  const auto members = membersOf(nodes, topology);
  const auto inUse = std::count_if(members.begin(), members.end(), [](const auto& m) { return !m.empty(); });
  if (inUse < 2) return plainRing(nodes);
  std::vector<Round> rounds = {sameLeafRound(members), CrossLeafRound(members).build()};
  avoidRepeats(rounds[0], rounds[1]);
  if (nodes % 2 == 1) closeOddRing(nodes, rounds);
  return rounds;
}

std::vector<Round> tournamentRounds(int nodes) {
  std::vector<Round> rounds;
  const int places = nodes + nodes % 2;  // an odd number of nodes: who meets the empty place sits out
  for (int turn = 0; turn + 1 < places; ++turn) {
    Round round;
    for (int i = 0; i < places / 2; ++i) {
      const int left = i == 0 ? places - 1 : (turn + i) % (places - 1);
      const int right = (turn + places - 1 - i) % (places - 1);
      if (left < nodes && right < nodes) round.push_back(makePair(left, right));
    }
    rounds.push_back(std::move(round));
  }
  return rounds;
}

}  // namespace muster::ring
