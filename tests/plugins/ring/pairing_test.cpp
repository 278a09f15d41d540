// SPDX-License-Identifier: Apache-2.0
// The opening rounds: nobody is dropped, nobody is in two pairs at once, everybody meets two others.
#include "plugins/ring/solver/pairing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace muster::ring {
namespace {

/// Partners of each node; fails where a round uses a node twice.
std::vector<std::set<int>> partnersOf(int nodes, const std::vector<Round>& rounds) {
  std::vector<std::set<int>> partners(static_cast<size_t>(nodes));
  for (const Round& round : rounds) {
    std::set<int> busy;
    for (const Pair& pair : round) {
      EXPECT_LT(pair.a, pair.b);
      EXPECT_TRUE(busy.insert(pair.a).second && busy.insert(pair.b).second) << "two pairs at once";
      partners[static_cast<size_t>(pair.a)].insert(pair.b);
      partners[static_cast<size_t>(pair.b)].insert(pair.a);
    }
  }
  return partners;
}

void expectAllMeetTwo(int nodes, const std::vector<Round>& rounds) {
  const auto partners = partnersOf(nodes, rounds);
  for (int node = 0; node < nodes; ++node)
    EXPECT_GE(partners[static_cast<size_t>(node)].size(), 2u) << "node " << node << " of " << nodes;
}

Topology leaves(std::vector<int> leafOf) {
  Topology topology;
  const int most = *std::max_element(leafOf.begin(), leafOf.end());
  topology.leafOf = std::move(leafOf);
  for (int leaf = 0; leaf <= most; ++leaf) topology.names.push_back("leaf" + std::to_string(leaf));
  return topology;
}

TEST(OpeningRounds, FormARingInTwoRoundsOrThree) {
  for (int nodes = 3; nodes <= 130; ++nodes) {
    const auto rounds = openingRounds(nodes, {});
    EXPECT_EQ(rounds.size(), nodes % 2 == 0 ? 2u : 3u) << nodes;
    expectAllMeetTwo(nodes, rounds);
  }
}

TEST(OpeningRounds, OfOneOrTwoNodesAreNoneOrOnePair) {
  EXPECT_TRUE(openingRounds(0, {}).empty());
  EXPECT_TRUE(openingRounds(1, {}).empty());
  ASSERT_EQ(openingRounds(2, {}).size(), 1u);
  EXPECT_EQ(openingRounds(2, {})[0], (Round{{0, 1}}));
}

TEST(Tournament, MeasuresEachPairOnceAndDropsNobody) {
  for (int nodes = 0; nodes <= 130; ++nodes) {
    const auto rounds = tournamentRounds(nodes);
    if (nodes >= 2) {
      EXPECT_EQ(rounds.size(), static_cast<size_t>(nodes - 1 + nodes % 2)) << nodes;
    }
    size_t pairs = 0;
    for (const Round& round : rounds) {
      pairs += round.size();
      EXPECT_EQ(round.size(), static_cast<size_t>(nodes / 2)) << "of " << nodes << " nodes some are idle";
    }
    for (const auto& partners : partnersOf(nodes, rounds))
      EXPECT_EQ(partners.size(), static_cast<size_t>(nodes - 1)) << nodes;
    EXPECT_EQ(pairs, static_cast<size_t>(nodes) * static_cast<size_t>(std::max(0, nodes - 1)) / 2) << nodes;
  }
}

TEST(OpeningRounds, PairInsideLeavesAndThenAcross) {
  std::vector<int> leafOf;
  for (int node = 0; node < 64; ++node) leafOf.push_back(node / 16);
  const Topology topology = leaves(leafOf);
  const auto rounds = openingRounds(64, topology);
  ASSERT_EQ(rounds.size(), 2u);
  for (const Pair& pair : rounds[0]) EXPECT_FALSE(topology.crosses(pair));
  for (const Pair& pair : rounds[1]) EXPECT_TRUE(topology.crosses(pair));
  expectAllMeetTwo(64, rounds);
}

TEST(OpeningRounds, LetEachLeafMeetSeveralOthers) {
  std::vector<int> leafOf;
  for (int node = 0; node < 32; ++node) leafOf.push_back(node / 8);
  const Topology topology = leaves(leafOf);
  std::vector<std::set<int>> met(4);
  const auto rounds = openingRounds(32, topology);
  for (const Pair& pair : rounds[1]) {
    met[static_cast<size_t>(topology.leaf(pair.a))].insert(topology.leaf(pair.b));
    met[static_cast<size_t>(topology.leaf(pair.b))].insert(topology.leaf(pair.a));
  }
  for (const auto& others : met) EXPECT_GE(others.size(), 2u);
}

TEST(OpeningRounds, KeepEverybodyInAnyTopology) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 400; ++trial) {
    const int nodes = 4 + static_cast<int>(random() % 40);
    const int count = 1 + static_cast<int>(random() % 7);
    std::vector<int> leafOf;
    for (int node = 0; node < nodes; ++node)
      leafOf.push_back(static_cast<int>(random() % static_cast<unsigned>(count)));
    const auto rounds = openingRounds(nodes, leaves(leafOf));
    EXPECT_LE(rounds.size(), nodes % 2 == 0 ? 2u : 3u);
    expectAllMeetTwo(nodes, rounds);
  }
}

}  // namespace
}  // namespace muster::ring
