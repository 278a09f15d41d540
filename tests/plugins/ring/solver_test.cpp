// SPDX-License-Identifier: Apache-2.0
// Schedule and solver on clusters without noise: each kind of fault, and those that look alike.
#include "plugins/ring/solver/solver.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <set>

#include "plugins/ring/solver/lane_analysis.h"
#include "plugins/ring/solver/lane_figures.h"

namespace muster::ring {
namespace {

/// Whether what is reported rejects anything.
bool rejects(const RoundLog& log) {
  const std::vector<Culprit> culprits = solve(log);
  return std::any_of(culprits.begin(), culprits.end(), [](const Culprit& c) { return !c.undecided; });
}

/// The share of its speed that a pair has on a lane.
using SpeedOf = std::function<double(const Pair& pair, const Lane& lane, int round)>;

std::vector<double> measure(const RoundLog& log, const Pair& pair, const SpeedOf& speedOf, int round) {
  std::vector<double> speeds;
  for (const Lane& lane : log.lanes()) speeds.push_back(48e9 * speedOf(pair, lane, round));
  return speeds;
}

std::vector<double> noSpreads(const RoundLog& log) {
  return std::vector<double>(log.lanes().size());
}

RoundLog measureAll(int nodes, const SpeedOf& speedOf, Topology topology = {},
                    std::vector<Lane> lanes = {Lane{Quantity::kBandwidth, "all"}},
                    Coverage coverage = Coverage::kQuick) {
  RoundLog log(nodes, std::move(topology), std::move(lanes), coverage);
  for (Round round = nextRound(log); !round.empty(); round = nextRound(log)) {
    const int number = log.rounds();
    std::set<int> busy;
    for (const Pair& pair : round) {
      EXPECT_TRUE(busy.insert(pair.a).second && busy.insert(pair.b).second) << "round " << number;
      log.add(number, pair, measure(log, pair, speedOf, number).data(), noSpreads(log).data());
    }
    for (Round again = pairsToRemeasure(log); !again.empty(); again = pairsToRemeasure(log))
      for (const Pair& pair : again)
        log.addLook(pair, measure(log, pair, speedOf, number).data(), noSpreads(log).data());
  }
  for (auto rounds = nextVisit(log); !rounds.empty(); rounds = nextVisit(log)) {
    const int visit = log.visitsHeld();
    for (const Round& round : rounds)
      for (const Pair& pair : round)
        log.addVisit({visit, pair, visitTime(visit, 30)},
                     measure(log, pair, speedOf, log.rounds() + visit).data());
  }
  return log;
}

bool has(const Pair& pair, int node) {
  return pair.a == node || pair.b == node;
}

SpeedOf slowNodes(std::set<int> nodes, double factor = 0.7) {
  return [=](const Pair& pair, const Lane&, int) {
    return nodes.count(pair.a) + nodes.count(pair.b) > 0 ? factor : 1.0;
  };
}

SpeedOf slowLinks(std::vector<Pair> links, double factor = 0.7) {
  return [=](const Pair& pair, const Lane&, int) {
    return std::find(links.begin(), links.end(), pair) != links.end() ? factor : 1.0;
  };
}

/// Each rail alone, and all together.
std::vector<Lane> rails(int count) {
  std::vector<Lane> lanes;
  for (int rail = 0; rail < count; ++rail) lanes.push_back({Quantity::kBandwidth, std::to_string(rail)});
  lanes.push_back({Quantity::kBandwidth, "all"});
  return lanes;
}

std::vector<std::string> namesOf(const RoundLog& log) {
  std::vector<std::string> names;
  for (const Culprit& c : solve(log)) {
    std::string name = culpritKindName(c.kind);
    for (int node : c.nodes) name += " " + std::to_string(node);
    if (!c.rail.empty()) name += " rail " + c.rail;
    if (c.leaf >= 0) name += " " + std::to_string(c.leaf);
    names.push_back(name);
  }
  return names;
}

using Names = std::vector<std::string>;

TEST(Ring, OfHealthyNodesTakesTwoRoundsOrThreeOrMeasuresEveryPairOfFive) {
  const std::pair<int, int> rounds[] = {{2, 1}, {3, 3}, {4, 3}, {5, 5}, {6, 2}, {9, 3}, {64, 2}, {233, 3}};
  for (const auto& [nodes, expected] : rounds) {
    const RoundLog log = measureAll(nodes, slowNodes({}));
    EXPECT_EQ(log.rounds(), expected) << nodes;
    EXPECT_TRUE(solve(log).empty()) << nodes;
  }
}

TEST(Ring, NamesEachNodeWithinFourRoundsOrOneMoreThanAllPairs) {
  for (int nodes : {4, 5, 8, 9, 33})
    for (int bad = 0; bad < nodes; ++bad) {
      const RoundLog log = measureAll(nodes, slowNodes({bad}, 0.85));
      EXPECT_EQ(namesOf(log), Names{"node " + std::to_string(bad)}) << nodes;
      EXPECT_LE(log.rounds(), nodes == 5 ? 6 : 4) << bad << " of " << nodes;
    }
}

TEST(Ring, NamesEachLinkWithinFourRoundsOrOneMoreThanAllPairs) {
  for (int nodes : {4, 5, 8, 9, 33})
    for (const Round& round : openingRounds(nodes, {}))
      for (const Pair& link : round) {
        const RoundLog log = measureAll(nodes, slowLinks({link}, 0.85));
        EXPECT_EQ(namesOf(log), Names{"link " + std::to_string(link.a) + " " + std::to_string(link.b)});
        EXPECT_LE(log.rounds(), nodes == 5 ? 6 : 4) << link.a << "-" << link.b << " of " << nodes;
      }
}

TEST(Ring, NamesTwoNodesOfFourOrFiveAndNotTheOneBetween) {
  for (const int nodes : {4, 5})
    for (int a = 0; a < nodes; ++a)
      for (int b = a + 1; b < nodes; ++b)
        for (const double speed : {0.6, 0.85}) {
          const Names names = namesOf(measureAll(nodes, slowNodes({a, b}, speed)));
          for (const std::string& name : names)
            EXPECT_TRUE(name == fmt::format("node {}", a) || name == fmt::format("node {}", b))
                << name << " for " << a << ", " << b << " of " << nodes;
        }
}

TEST(Ring, TellsTwoAdjacentLinksFromTheNodeBetweenThem) {
  const RoundLog log = measureAll(8, slowLinks({{2, 3}, {3, 4}}));
  EXPECT_EQ(namesOf(log), (Names{"link 2 3", "link 3 4"}));
}

TEST(Ring, NamesAdjacentBadNodesAndNotTheOneBetweenTwo) {
  EXPECT_EQ(namesOf(measureAll(16, slowNodes({4, 5}))), (Names{"node 4", "node 5"}));
  EXPECT_EQ(namesOf(measureAll(16, slowNodes({4, 6}))), (Names{"node 4", "node 6"}));
}

TEST(Ring, QueuesSuspectsWhenPartnersAreFew) {
  const RoundLog log = measureAll(8, slowNodes({0, 2, 4}));
  EXPECT_EQ(namesOf(log), (Names{"node 0", "node 2", "node 4"}));
  EXPECT_GT(log.rounds(), 3) << "five suspects and three partners do not fit into one round";
}

TEST(Ring, TestsSuspectsAgainstDistinctNodes) {
  const RoundLog log = measureAll(32, slowNodes({3, 11, 20}));
  std::set<int> partners;
  for (const Meeting& meeting : log.meetings()) {
    if (meeting.round != 2) continue;
    EXPECT_TRUE(partners.insert(meeting.pair.a).second && partners.insert(meeting.pair.b).second);
  }
  EXPECT_GE(partners.size(), 6u);
}

TEST(Ring, FindsABadNodeAndABadLinkSideBySide) {
  const SpeedOf speed = [](const Pair& pair, const Lane&, int) {
    return has(pair, 5) ? 0.6 : pair == Pair{6, 7} ? 0.8 : 1.0;
  };
  EXPECT_EQ(namesOf(measureAll(16, speed)), (Names{"node 5", "link 6 7"}));
}

TEST(Ring, NamesARailOfANodeAndNothingElse) {
  const SpeedOf speed = [](const Pair& pair, const Lane& lane, int) {
    return has(pair, 3) && (lane.rail == "6" || lane.rail == "all") ? 0.5 : 1.0;
  };
  EXPECT_EQ(namesOf(measureAll(8, speed, {}, rails(8))), Names{"node-rail 3 rail 6"});
}

TEST(Ring, NamesARailThatIsSlowBetweenMostNodesAndNoNode) {
  const auto slowAt = [](int rounds, auto isSlow) {
    return [=](const Pair& pair, const Lane& lane, int round) {
      return round < rounds && (lane.rail == "1" || lane.rail == "all") && (isSlow(pair.a) || isSlow(pair.b))
                 ? 0.7
                 : 1.0;
    };
  };
  const auto all = [](int) { return true; };
  for (const int nodes : {4, 5, 9, 16, 33})
    for (const int count : {3, 4, 8}) {
      const Names rail{"rail rail 1"};
      EXPECT_EQ(namesOf(measureAll(nodes, slowAt(99, all), {}, rails(count))), rail);
      const auto most = [&](int node) { return node < nodes - 1; };
      EXPECT_EQ(namesOf(measureAll(nodes, slowAt(99, most), {}, rails(count))), rail);
      // Each pair has a slow node, or two of three nodes are.
      const int every = nodes % 2 == 0 ? 2 : 3;
      const auto some = [&](int node) { return node % every > 0 || nodes == 4; };
      EXPECT_EQ(namesOf(measureAll(nodes, slowAt(99, some), {}, rails(count))), rail) << nodes;
      EXPECT_TRUE(rejects(measureAll(nodes, slowAt(99, all), {}, rails(count))));
      // It passed before the last later measurement.
      const RoundLog passed = measureAll(nodes, slowAt(7, all), {}, rails(count));
      EXPECT_EQ(namesOf(passed).size(), 1u);
      EXPECT_FALSE(rejects(passed));
    }
  // One pair of four nodes that is well, which leaves two.
  for (const std::string& name :
       namesOf(measureAll(4, slowAt(99, [](int node) { return node < 2; }), {}, rails(8))))
    EXPECT_NE(name, "rail rail 1");
  // With two rails or three nodes it may as well be the NICs of nodes.
  for (const auto& [nodes, count] : {std::pair{3, 8}, {16, 2}})
    for (const std::string& name : namesOf(measureAll(nodes, slowAt(99, all), {}, rails(count))))
      EXPECT_NE(name, "rail rail 1");
}

TEST(Ring, CallsMostRailsTheNodeAndAllRailsAloneToo) {
  std::vector<Lane> lanes;
  for (int rail = 0; rail < 8; ++rail) lanes.push_back({Quantity::kBandwidth, std::to_string(rail)});
  lanes.push_back({Quantity::kBandwidth, "all"});
  const SpeedOf most = [](const Pair& pair, const Lane& lane, int) {
    return has(pair, 3) && lane.rail != "0" && lane.rail != "1" ? 0.5 : 1.0;
  };
  EXPECT_EQ(namesOf(measureAll(8, most, {}, lanes)), Names{"node 3"});
  const SpeedOf together = [](const Pair& pair, const Lane& lane, int) {
    return has(pair, 3) && lane.rail == "all" ? 0.5 : 1.0;
  };
  EXPECT_EQ(namesOf(measureAll(8, together, {}, lanes)), Names{"node 3"});
}

TEST(Ring, SeesASlowLatencyBehindAGoodBandwidth) {
  const std::vector<Lane> lanes = {{Quantity::kBandwidth, "all"}, {Quantity::kLatency, "all", 0.1}};
  const SpeedOf speed = [](const Pair& pair, const Lane& lane, int) {
    return has(pair, 2) && lane.quantity == Quantity::kLatency ? 0.2 : 1.0;
  };
  const auto culprits = solve(measureAll(8, speed, {}, lanes));
  ASSERT_EQ(culprits.size(), 1u);
  EXPECT_EQ(culprits[0].quantity, Quantity::kLatency);
  EXPECT_NE(culprits[0].evidence.find("latency 400.0% above"), std::string::npos) << culprits[0].evidence;
}

Topology leavesOf(int nodes, int size) {
  Topology topology;
  for (int node = 0; node < nodes; ++node) topology.leafOf.push_back(node / size);
  for (int leaf = 0; leaf <= (nodes - 1) / size; ++leaf)
    topology.names.push_back("leaf" + std::to_string(leaf));
  return topology;
}

TEST(Ring, NamesALeafsUplinkAndNotItsNodesOrLinks) {
  for (int size : {2, 4, 8}) {
    const Topology topology = leavesOf(32, size);
    const SpeedOf speed = [&](const Pair& pair, const Lane&, int) {
      return topology.crosses(pair) && (topology.leaf(pair.a) == 1 || topology.leaf(pair.b) == 1) ? 0.8 : 1.0;
    };
    const RoundLog log = measureAll(32, speed, topology);
    EXPECT_EQ(namesOf(log), Names{"leaf-uplink 1"}) << size;
    EXPECT_LE(log.rounds(), 4);
  }
}

TEST(Ring, DoesNotBlameAnUplinkForOneNodeOfItsLeaf) {
  const Topology topology = leavesOf(32, 4);
  EXPECT_EQ(namesOf(measureAll(32, slowNodes({5}), topology)), Names{"node 5"});
}

/// Without a topology an uplink cannot be named; its nodes are not at fault, beside a bad node or link,
/// either, and where every pair is measured.
TEST(Ring, NamesNoNodeForAnUplinkThatItDoesNotKnow) {
  const auto crosses = [](const Pair& pair) { return (pair.a / 4 == 1) != (pair.b / 4 == 1); };
  for (const Coverage coverage : {Coverage::kQuick, Coverage::kAll})
    for (const int nodes : {8, 12, 13})
      for (const double factor : {0.5, 0.8})
        for (int at = -1; at < nodes; ++at)
          for (const bool link : {false, true}) {
            if (link && nodes < 12) continue;  // too few partners to tell
            const Pair bad = makePair(at, (at + 1) % nodes);
            const SpeedOf speed = [&](const Pair& pair, const Lane&, int) {
              const bool slow = at >= 0 && (link ? pair == bad : has(pair, at));
              return (crosses(pair) ? factor : 1.0) * (slow ? factor : 1.0);
            };
            const RoundLog log = measureAll(nodes, speed, {}, {{Quantity::kBandwidth, "all"}}, coverage);
            for (const std::string& name : namesOf(log))
              EXPECT_TRUE(!name.starts_with("node ") || (!link && name == fmt::format("node {}", at)))
                  << name << " for " << (link ? "link " : "node ") << at << " at " << factor << " of "
                  << nodes;
          }
}

/// Whichever end of the pair it is.
TEST(Ring, KnowsWhichPairsACulpritSlowsDown) {
  Culprit culprit;
  culprit.nodes = {5};
  for (const auto kind : {Culprit::Kind::kNode, Culprit::Kind::kUnattributable}) {
    culprit.kind = kind;
    EXPECT_TRUE(slowsDown(culprit, {3, 5}, {}));
    EXPECT_TRUE(slowsDown(culprit, {5, 7}, {}));
    EXPECT_FALSE(slowsDown(culprit, {3, 7}, {}));
  }
  culprit.kind = Culprit::Kind::kLink;
  culprit.nodes = {3, 5};
  EXPECT_TRUE(slowsDown(culprit, {3, 5}, {}));
  EXPECT_FALSE(slowsDown(culprit, {5, 7}, {}));
}

/// One of so many nodes may be slow by chance, until later measurements tell.
TEST(Ring, NamesNodesAmongThousands) {
  for (const int nodes : {1024, 1500})
    for (const Topology& topology : {Topology(), leavesOf(nodes, 16)}) {
      std::set<int> bad;
      Names expected;
      for (int node = 5; node < nodes; node += 97) {
        bad.insert(node);
        expected.push_back(fmt::format("node {}", node));
      }
      EXPECT_EQ(namesOf(measureAll(nodes, slowNodes(bad), topology)), expected) << nodes;
    }
}

/// Its partner in the leaf met nobody else but those across.
TEST(Ring, NamesABadNodeBehindASlowUplinkAndNotItsPartner) {
  Topology topology;
  for (int node = 0; node < 20; ++node) topology.leafOf.push_back(node / 4);
  topology.names = {"leaf0", "leaf1", "leaf2", "leaf3", "leaf4"};
  for (int bad = 0; bad < 20; ++bad)
    for (const double factor : {0.3, 0.6}) {
      const SpeedOf speed = [&](const Pair& pair, const Lane&, int) {
        const bool isAcross = (pair.a / 4 == bad / 4) != (pair.b / 4 == bad / 4);
        return (has(pair, bad) ? factor : 1.0) * (isAcross ? 0.85 : 1.0);
      };
      const Names names = namesOf(measureAll(20, speed, topology));
      for (const std::string& name : names)
        EXPECT_TRUE(!name.starts_with("node ") || name == fmt::format("node {}", bad))
            << name << " for " << bad;
      EXPECT_THAT(names, ::testing::Contains(fmt::format("node {}", bad)));
    }
}

/// Also where the last leaf is short, so that few pairs avoid the slow one.
TEST(Ring, NamesASlowUplinkOfThreeLeavesOrMore) {
  for (const int size : {2, 3, 4, 5, 6, 8})
    for (int nodes = std::max(6, 2 * size + 1); nodes <= 24; ++nodes)
      for (int leaf = 0; leaf < nodes / size; ++leaf)
        for (const double factor : {0.3, 0.8}) {
          const SpeedOf speed = [&](const Pair& pair, const Lane&, int) {
            return (pair.a / size == leaf) != (pair.b / size == leaf) ? factor : 1.0;
          };
          EXPECT_EQ(namesOf(measureAll(nodes, speed, leavesOf(nodes, size))),
                    Names{fmt::format("leaf-uplink {}", leaf)})
              << nodes << " nodes in leaves of " << size << ", " << factor;
        }
}

/// A bad node and a slow uplink, of each leaf in turn, where speeds multiply and where the slowest part of
/// the way counts, which is half as fast across leaves as within one: nobody else is named, and every other
/// node has shown nearly the best that it can.
TEST(Ring, NamesABadNodeAndASlowUplinkWhereverTheyAre) {
  struct World {
    int nodes, size;
  };
  for (const auto [nodes, size] : {World{12, 3}, {12, 6}, {15, 4}, {16, 4}, {16, 8}, {24, 8}})
    for (const int bad : {0, 1, size - 1, size, nodes - 2, nodes - 1})
      for (const int leaf : {0, (nodes - 1) / size})
        for (const double uplink : {0.85, 1.0})
          for (const bool isSlowestPart : {false, true}) {
            const double factor = 0.6;
            const SpeedOf speed = [&, size = size](const Pair& pair, const Lane&, int) {
              const bool isOfLeaf = (pair.a / size == leaf) != (pair.b / size == leaf);
              const double node = has(pair, bad) ? factor : 1.0, across = isOfLeaf ? uplink : 1.0;
              if (!isSlowestPart) return node * across;
              return pair.a / size == pair.b / size ? node : std::min(node, 0.5 * across);
            };
            const RoundLog log = measureAll(nodes, speed, leavesOf(nodes, size));
            const std::string what =
                fmt::format("{} nodes in leaves of {}, node {}, uplink {} at {}, slowest part {}", nodes,
                            size, bad, leaf, uplink, isSlowestPart);
            for (const std::string& name : namesOf(log))
              EXPECT_TRUE(name == fmt::format("node {}", bad) ||
                          (uplink < 1 && name == fmt::format("leaf-uplink {}", leaf)))
                  << name << ", " << what;
            EXPECT_THAT(namesOf(log), ::testing::Contains(fmt::format("node {}", bad))) << what;
            std::vector<double> shown(static_cast<size_t>(nodes));
            for (const Meeting& meeting : log.meetings())
              for (const int node : {meeting.pair.a, meeting.pair.b}) {
                double& best = shown[static_cast<size_t>(node)];
                best = std::max(best, speed(meeting.pair, {}, 0));
              }
            for (int node = 0; node < nodes; ++node)
              EXPECT_GE(shown[static_cast<size_t>(node)], node == bad ? 0.3 : 0.9) << node << ", " << what;
          }
}

/// Its loss is what it has without its neighbour.
TEST(Ring, TellsTheLossOfAMildlyBadNodeBesideAnotherOne) {
  const SpeedOf speed = [](const Pair& pair, const Lane&, int) {
    return (has(pair, 1) ? 0.5 : 1.0) * (has(pair, 2) ? 0.8 : 1.0);
  };
  bool isNamed = false;
  for (const Culprit& culprit : solve(measureAll(16, speed)))
    if (culprit.nodes == std::vector{2}) {
      isNamed = true;
      EXPECT_NEAR(culprit.loss, 0.2, 0.03);
    }
  EXPECT_TRUE(isNamed);
}

TEST(Ring, DoesNotTakeTheSlowerWayAcrossLeavesForAFault) {
  const Topology topology = leavesOf(16, 4);
  const SpeedOf speed = [&](const Pair& pair, const Lane&, int) {
    return topology.crosses(pair) ? 0.5 : 1.0;
  };
  EXPECT_TRUE(solve(measureAll(16, speed, topology)).empty());
}

TEST(Ring, ForgetsWhatDoesNotRepeat) {
  const SpeedOf once = [](const Pair& pair, const Lane&, int round) {
    return round < 2 && pair == Pair{2, 3} ? 0.5 : 1.0;
  };
  const RoundLog log = measureAll(8, once);
  EXPECT_TRUE(solve(log).empty());
  const LaneFindings found = analyseLanes(log, MeetingsByNode(log)).front();
  EXPECT_EQ(found.unrepeated, (std::vector<Pair>{{2, 3}}));
}

TEST(Ring, MeasuresALoneSlowPairAgainBeforeItAsksOthers) {
  // 0.9 with 3-4 alone, and both nodes' other pairs a little slow: not enough to clear them.
  const SpeedOf speed = [](const Pair& pair, const Lane&, int round) {
    if (pair == Pair{3, 4}) return round < 2 ? 0.9 : 1.0;
    return (has(pair, 3) || has(pair, 4)) && round < 2 ? 0.96 : 1.0;
  };
  const RoundLog log = measureAll(16, speed);
  ASSERT_EQ(log.rounds(), 3);
  EXPECT_EQ(log.meetings().back().pair, (Pair{3, 4}));
  EXPECT_TRUE(solve(log).empty());
}

constexpr Pair kInconclusive = {3, 4};
constexpr double kInconclusiveSpeed = 0.935;

TEST(Ring, RemeasuresAnInconclusivePairBeforeItsRoundEnds) {
  int looks = 0;
  const SpeedOf once = [&](const Pair& pair, const Lane&, int) {
    return pair == kInconclusive && looks++ == 0 ? kInconclusiveSpeed : 1.0;
  };
  const RoundLog log = measureAll(64, once);
  EXPECT_EQ(log.rounds(), 2);
  EXPECT_TRUE(solve(log).empty());
  for (const Meeting& m : log.meetings()) EXPECT_EQ(m.looks, m.pair == kInconclusive ? 2 : 1);
}

TEST(Ring, NamesALinkThatIsSlightlySlowInEveryMeasurement) {
  const RoundLog log = measureAll(64, slowLinks({kInconclusive}, kInconclusiveSpeed));
  EXPECT_EQ(namesOf(log), Names{"link 3 4"});
  for (const Meeting& m : log.meetings())
    EXPECT_EQ(m.looks, m.pair == kInconclusive && m.round < 2 ? 3 : 1) << "round " << m.round;
  EXPECT_EQ(log.rounds(), 4) << "three of them must agree";
}

TEST(Ring, DoesNotTrustLooksOfOneRoundLikeFiguresOfSeveral) {
  // Noise that lasts as long as a round is in all its looks.
  const SpeedOf twoRounds = [](const Pair& pair, const Lane&, int round) {
    return pair == kInconclusive && round < 3 ? kInconclusiveSpeed : 1.0;
  };
  EXPECT_TRUE(solve(measureAll(64, twoRounds)).empty());
}

TEST(Ring, NamesNothingThatWasSlowForAWhileAndDoesNotPassItEither) {
  // However slow it was in the rounds: a fault is there when the pair is measured later, a passing load is
  // not.
  for (int until = 3; until <= 7; ++until) {
    const auto passing = [until](double factor, auto slow) {
      return [=](const Pair& pair, const Lane&, int round) {
        return round < until && slow(pair) ? factor : 1.0;
      };
    };
    const auto link = [](const Pair& pair) { return pair == kInconclusive; };
    const auto node = [](const Pair& pair) { return has(pair, 5); };
    const RoundLog slowLink = measureAll(64, passing(0.85, link)),
                   slowNode = measureAll(64, passing(0.3, node));
    EXPECT_EQ(namesOf(slowLink), Names{"unattributable 3 4"}) << until;
    EXPECT_EQ(namesOf(slowNode), Names{"unattributable 5"}) << until;
    EXPECT_FALSE(rejects(slowLink) || rejects(slowNode)) << until;
  }
  const RoundLog lasting = measureAll(64, slowLinks({kInconclusive}, 0.85));
  EXPECT_EQ(namesOf(lasting), Names{"link 3 4"});
  EXPECT_TRUE(rejects(lasting));
}

TEST(Ring, RejectsAPairOfTwoOnlyWhereItStaysSlow) {
  // Nobody can tell the link of three nodes' slow pairs from a node: they are not located, but measured
  // again.
  for (const bool stays : {true, false}) {
    const auto twoOfThree = [&](const Pair& pair, const Lane&, int round) {
      return has(pair, 1) && (stays || round < 6) ? 0.5 : 1.0;
    };
    const RoundLog log = measureAll(3, twoOfThree);
    EXPECT_FALSE(solve(log).empty()) << stays;
    EXPECT_EQ(rejects(log), stays);
  }
}

TEST(Ring, RejectsNothingForAnUncertainFinding) {
  RoundLog log(16, {}, {Lane{Quantity::kBandwidth, "all"}});
  std::vector<int> machines;
  for (int node = 0; node < log.nodes(); ++node) machines.push_back(node / 2);
  log.setMachines(machines);
  const SpeedOf both = slowNodes({4, 5});
  for (Round round = nextRound(log); !round.empty(); round = nextRound(log)) {
    const int number = log.rounds();
    for (const Pair& pair : round)
      log.add(number, pair, measure(log, pair, both, number).data(), noSpreads(log).data());
  }
  EXPECT_EQ(namesOf(log), (Names{"node 4", "node 5"})) << "or the machine, or what else runs on it";
  EXPECT_FALSE(rejects(log));
}

TEST(Ring, DoesNotRemeasureAPairThatASingleFigureProvesSlow) {
  const RoundLog log = measureAll(64, slowLinks({kInconclusive}, 0.5));
  EXPECT_EQ(namesOf(log), Names{"link 3 4"});
  for (const Meeting& m : log.meetings()) EXPECT_EQ(m.looks, 1);
}

/// All ranks wait for a CPU: `excuse` on every figure.
RoundLog measureLoaded(const SpeedOf& speedOf, double excuse) {
  RoundLog log(8, {}, {Lane{Quantity::kBandwidth, "all"}});
  for (Round round = nextRound(log); !round.empty(); round = nextRound(log)) {
    const int number = log.rounds();
    for (const Pair& pair : round)
      log.add(number, pair, measure(log, pair, speedOf, number).data(), noSpreads(log).data(), &excuse);
  }
  for (auto rounds = nextVisit(log); !rounds.empty(); rounds = nextVisit(log)) {
    const int visit = log.visitsHeld();
    for (const Round& round : rounds)
      for (const Pair& pair : round)
        log.addVisit({visit, pair, visitTime(visit, 30)}, measure(log, pair, speedOf, 9).data(), &excuse);
  }
  return log;
}

TEST(Ring, OnALoadedMachineNamesOnlyWhatTheLoadCannotExplainAndPassesNothing) {
  const SpeedOf tenth = slowLinks({{2, 3}}, 0.1), half = slowLinks({{2, 3}}, 0.5);
  EXPECT_EQ(namesOf(measureLoaded(tenth, 1)), Names{"link 2 3"});
  EXPECT_EQ(namesOf(measureLoaded(half, 1)), Names{"unattributable 2 3"});
  EXPECT_EQ(namesOf(measureLoaded(half, 0.1)), Names{"link 2 3"});
  EXPECT_TRUE(namesOf(measureLoaded(slowLinks({}), 1)).empty());
}

/// Each measurement of a slow pair waits for a CPU for another time, and loses a part of it or all.
class WaitingPairs {
 public:
  WaitingPairs(int nodes, SpeedOf speedOf, unsigned seed)
      : log_(nodes, {}, {Lane{Quantity::kBandwidth, "all"}}), speedOf_(std::move(speedOf)), random_(seed) {
    for (Round round = nextRound(log_); !round.empty(); round = nextRound(log_)) {
      const int number = log_.rounds();
      for (const Pair& pair : round) {
        const Figure f = figure(pair);
        log_.add(number, pair, &f.speed, &kNoSpread, &f.excuse);
      }
      for (Round again = pairsToRemeasure(log_); !again.empty(); again = pairsToRemeasure(log_))
        for (const Pair& pair : again) {
          const Figure f = figure(pair);
          log_.addLook(pair, &f.speed, &kNoSpread, &f.excuse);
        }
    }
    for (auto rounds = nextVisit(log_); !rounds.empty(); rounds = nextVisit(log_)) {
      const int visit = log_.visitsHeld();
      for (const Round& round : rounds)
        for (const Pair& pair : round) {
          const Figure f = figure(pair);
          log_.addVisit({visit, pair, visitTime(visit, 30)}, &f.speed, &f.excuse);
        }
    }
  }
  [[nodiscard]] const RoundLog& log() const { return log_; }

 private:
  struct Figure {
    double speed = 0, excuse = 0;
  };
  Figure figure(const Pair& pair) {
    const double share = speedOf_(pair, log_.lanes().front(), log_.rounds());
    const auto draw = [&](double most) { return std::uniform_real_distribution<double>(0, most)(random_); };
    if (share == 1 || draw(1) < 0.4) return {48e9 * share, 0};
    const double excuse = draw(2);
    return {48e9 * share * std::exp(-draw(excuse)), excuse};
  }

  static constexpr double kNoSpread = 0;
  RoundLog log_;
  SpeedOf speedOf_;
  std::mt19937 random_;
};

TEST(Ring, PassesNoPairAtHalfSpeedHoweverItsRanksWaited) {
  for (const int nodes : {4, 5, 8})
    for (unsigned seed = 0; seed < 100; ++seed) {
      const int bad = static_cast<int>(seed) % nodes;
      EXPECT_FALSE(
          solve(WaitingPairs(nodes, slowLinks({openingRounds(nodes, {})[0][0]}, 0.5), seed).log()).empty())
          << "a link, " << nodes << " nodes, seed " << seed;
      EXPECT_FALSE(solve(WaitingPairs(nodes, slowNodes({bad}, 0.5), seed).log()).empty())
          << "node " << bad << " of " << nodes << ", seed " << seed;
    }
}

TEST(Ring, SaysNothingOfAnyPairWhereAllThatItComparesWithWaited) {
  // Healthy pairs lose as much to other processes as the slow link to its fault.
  for (const double excuse : {0.0, 1.0})
    for (const double floor : {0.02, 0.2}) {
      RoundLog log(4, {}, {Lane{Quantity::kBandwidth, "all", floor}});
      const double speed = 24e9, spread = 0, none = 0;
      for (Round round = nextRound(log); !round.empty(); round = nextRound(log)) {
        const int number = log.rounds();
        for (const Pair& pair : round)
          log.add(number, pair, &speed, &spread, pair.a == 0 && pair.b == 1 ? &none : &excuse);
      }
      const Resolution found = resolutionOf(log);
      EXPECT_TRUE(solve(log).empty());
      EXPECT_EQ(found.blind, excuse > 0 && floor < 0.1) << "a wide floor says that half need not be found";
      EXPECT_EQ(found.loss > 0.5, excuse > 0 || floor > 0.1);
    }
}

TEST(Ring, HasTheBestOfSeveralLooksCountInEachLane) {
  RoundLog log(4, {}, {{Quantity::kBandwidth, "0"}, {Quantity::kBandwidth, "1"}});
  const std::vector<double> first = {2, 5}, second = {3, 4}, spreads = {0.1, 0.2}, others = {0.3, 0.4};
  log.add(0, {0, 1}, first.data(), spreads.data());
  log.add(0, {2, 3}, first.data(), spreads.data());
  log.addLook({0, 1}, second.data(), others.data());
  ASSERT_EQ(log.meetings().size(), 2u);
  EXPECT_EQ(log.meetings()[0].looks, 2);
  EXPECT_EQ(log.meetings()[1].looks, 1);
  EXPECT_EQ(log.rounds(), 1);
  EXPECT_EQ(log.speed(0, 0), 3);
  EXPECT_EQ(log.spread(0, 0), 0.3);
  EXPECT_EQ(log.speed(0, 1), 5);
  EXPECT_EQ(log.spread(0, 1), 0.2);
  EXPECT_EQ(log.speed(1, 0), 2);
}

/// The third round after two without a second look.
Round thirdRound(const SpeedOf& speedOf) {
  RoundLog log(64, {}, {Lane{Quantity::kBandwidth, "all"}});
  for (int number = 0; number < 2; ++number)
    for (const Pair& pair : nextRound(log))
      log.add(number, pair, measure(log, pair, speedOf, number).data(), noSpreads(log).data());
  return nextRound(log);
}

TEST(Ring, RemeasuresAnInconclusivePairOfAnEarlierRoundOnlyInARoundThatIsHeldAnyway) {
  const SpeedOf inconclusive = slowLinks({kInconclusive}, kInconclusiveSpeed);
  EXPECT_TRUE(thirdRound(inconclusive).empty());
  const Round held = thirdRound([&](const Pair& pair, const Lane& lane, int round) {
    return has(pair, 10) ? 0.6 : inconclusive(pair, lane, round);
  });
  EXPECT_EQ(std::count(held.begin(), held.end(), kInconclusive), 1);
}

TEST(Ring, NamesNobodyWhereMostAreSlow) {
  // Half of the pairs are fast, most nodes are not: who is the odd one?
  const SpeedOf speed = [](const Pair& pair, const Lane&, int) { return pair.b < 4 ? 1.0 : 0.5; };
  const auto culprits = solve(measureAll(10, speed));
  ASSERT_EQ(culprits.size(), 1u);
  EXPECT_EQ(culprits[0].kind, Culprit::Kind::kUnattributable);
  EXPECT_EQ(culprits[0].confidence, 0);
}

TEST(Ring, OfTwoOrThreeNodesSaysWhatItCan) {
  EXPECT_TRUE(solve(measureAll(2, slowNodes({0}))).empty()) << "one pair has no peers";
  EXPECT_EQ(namesOf(measureAll(3, slowNodes({1}))), Names{"node 1"});
  EXPECT_EQ(namesOf(measureAll(3, slowLinks({{0, 1}}))), Names{"link 0 1"});
}

TEST(Ring, DoubtsALossThatTheRunsOwnNoiseMayHide) {
  const auto undecided = [](const Resolution& resolution) {
    auto culprits = solve(measureAll(16, slowNodes({3}, 0.4)));
    EXPECT_EQ(culprits.size(), 1u);
    culprits.push_back(culprits[0]);
    culprits[1].quantity = Quantity::kLatency;
    doubtInNoise(resolution, culprits);
    EXPECT_FALSE(culprits[1].undecided) << "latencies have a noise of their own";
    EXPECT_EQ(culprits[0].undecided, culprits[0].evidence.ends_with("% may be noise in this run"));
    return culprits[0].undecided;
  };
  EXPECT_TRUE(undecided({0.97, true}));
  EXPECT_FALSE(undecided({0.5, true})) << "more than the noise hides";
  EXPECT_FALSE(undecided({0.97, false})) << "the run is not blind";
}

TEST(Ring, IsSurerOfWhatCostsMore) {
  const auto mild = solve(measureAll(16, slowNodes({3}, 0.88)));
  const auto severe = solve(measureAll(16, slowNodes({3}, 0.4)));
  ASSERT_EQ(mild.size(), 1u);
  ASSERT_EQ(severe.size(), 1u);
  EXPECT_GE(severe[0].confidence, mild[0].confidence);
  EXPECT_GT(mild[0].confidence, 0.9);
  EXPECT_NEAR(severe[0].loss, 0.6, 1e-6);
}

}  // namespace
}  // namespace muster::ring
