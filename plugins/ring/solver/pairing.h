// SPDX-License-Identifier: Apache-2.0
// Which nodes meet whom in the opening rounds: everybody meets two others, whatever the number of nodes.
#pragma once

#include <string>
#include <vector>

namespace muster::ring {

/// Two nodes that exchange; a < b.
struct Pair {
  int a = 0;
  int b = 0;
  friend bool operator==(const Pair&, const Pair&) = default;
};
Pair makePair(int x, int y);  ///< in order

/// Whether `other` is among those before `node`, of all nodes in a circle.
bool isBelow(int node, int other, int nodes);

/// Disjoint pairs that are measured at the same time.
using Round = std::vector<Pair>;

/// Which leaf switch each node hangs on. Without `leafOf`, nothing is known and no pair crosses leaves.
struct Topology {
  std::vector<int> leafOf;         ///< by node
  std::vector<std::string> names;  ///< by leaf

  [[nodiscard]] bool known() const { return !leafOf.empty(); }
  [[nodiscard]] int leaf(int node) const { return known() ? leafOf[static_cast<size_t>(node)] : 0; }
  [[nodiscard]] bool crosses(const Pair& pair) const { return leaf(pair.a) != leaf(pair.b); }
};

/// The rounds that every group starts with: the edges of a ring in two rounds, three if `nodes` is odd, one
/// for two nodes, none for one. With a topology of several leaves the first round pairs nodes of one leaf as
/// far as possible, the second pairs across leaves, each leaf with as many others as possible: so a leaf's
/// uplink differs from its partners'. Every node is in at least two pairs where there are three nodes or
/// more.
std::vector<Round> openingRounds(int nodes, const Topology& topology);

/// Which pairs the opening rounds measure.
enum class Coverage {
  kQuick,  ///< the edges of a ring: each node meets two others; of up to kAllMeet nodes every pair
  kAll,    ///< every pair: each node meets all others
};

/// In a ring of so few nodes two bad ones leave no pair of two good ones, or too few to go by.
inline constexpr int kAllMeet = 5;

/// A tournament: every pair once, in nodes - 1 rounds (nodes, if odd) of pairs that are measured at the same
/// time. By the circle method: one node stays, the others move on by one place after each round.
std::vector<Round> tournamentRounds(int nodes);

}  // namespace muster::ring
