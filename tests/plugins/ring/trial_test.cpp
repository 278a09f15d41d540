// SPDX-License-Identifier: Apache-2.0
// A short version of tests/bench/ring_bench.cpp: noisy clusters, planted faults, fixed seeds.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/plugins/ring/ring_world.h"

namespace muster::ring::testing {
namespace {

constexpr int kTrials = 40;

struct Sum {
  int faults = 0, named = 0, wrong = 0, mostRounds = 0;
};

Sum runTrials(const WorldSpec& spec) {
  Sum sum;
  for (int i = 0; i < kTrials; ++i) {
    const TrialResult r = runTrial(spec, 77000 + static_cast<uint64_t>(i));
    sum.faults += r.faults;
    sum.named += r.named;
    sum.wrong += r.wrong;
    sum.mostRounds = std::max(sum.mostRounds, r.rounds);
  }
  return sum;
}

class Trials : public ::testing::TestWithParam<std::tuple<int, Noise>> {
 protected:
  [[nodiscard]] WorldSpec world(Plant plant, double severity) const {
    return {std::get<0>(GetParam()), plant, severity, std::get<1>(GetParam())};
  }
};

TEST_P(Trials, OfHealthyNodesNameNobodyInTheOpeningRounds) {
  WorldSpec healthy = world(Plant::kNothing, 0);
  for (const bool rails : {false, true}) {
    healthy.rails = rails;
    const Sum sum = runTrials(healthy);
    EXPECT_EQ(sum.wrong, 0);
    EXPECT_LE(sum.mostRounds, 2 + std::get<0>(GetParam()) % 2);
  }
}

TEST_P(Trials, NameSingleFaultsInFourRounds) {
  for (const Plant plant : {Plant::kOneNode, Plant::kLink, Plant::kNodeRail, Plant::kUplink})
    for (const double severity : {0.15, 0.4}) {
      const Sum sum = runTrials(world(plant, severity));
      EXPECT_EQ(sum.named, sum.faults) << plantName(plant) << " " << severity;
      EXPECT_EQ(sum.wrong, 0) << plantName(plant) << " " << severity;
      EXPECT_LE(sum.mostRounds, 4) << plantName(plant) << " " << severity;
    }
}

TEST_P(Trials, NameSeveralNodes) {
  const Sum sum = runTrials(world(Plant::kThreeNodes, 0.2));
  EXPECT_EQ(sum.named, sum.faults);
  EXPECT_EQ(sum.wrong, 0);
}

/// The pair of nodes that a ring of eight never pairs, and every other: with all pairs covered, no single
/// slow link is missed.
TEST(Coverage, OfAllPairsFindsEverySingleSlowLink) {
  for (int nodes = 3; nodes <= 64; ++nodes)
    for (const Noise noise : {Noise::kNormal, Noise::kSkewed})
      for (const double severity : {0.15, 0.5}) {
        WorldSpec world{nodes, Plant::kLink, severity, noise};
        world.coverage = Coverage::kAll;
        const auto seed = static_cast<uint64_t>(nodes) * 1000 + static_cast<uint64_t>(100 * severity);
        const TrialResult result = runTrial(world, seed);
        EXPECT_EQ(result.named, 1) << nodes << " nodes, " << severity << ", " << noiseName(noise);
        EXPECT_EQ(result.wrong, 0) << nodes << " nodes, " << severity << ", " << noiseName(noise);
        EXPECT_LE(result.rounds, nodes - 1 + nodes % 2 + 2) << nodes;
      }
}

/// The same without noise over every link of small groups, and what is measured is what is reported.
TEST(Coverage, OfAllPairsIsOneAndOfAQuickRingItsShare) {
  for (int nodes = 2; nodes <= 64; ++nodes)
    for (const Coverage coverage : {Coverage::kQuick, Coverage::kAll}) {
      RoundLog log(nodes, {}, {Lane{Quantity::kBandwidth, "all"}}, coverage);
      for (Round round = nextRound(log); !round.empty(); round = nextRound(log)) {
        const double speed = 48e9, spread = 0;
        const int number = log.rounds();
        for (const Pair& pair : round) log.add(number, pair, &speed, &spread);
      }
      const double all = nodes * (nodes - 1) / 2.0;
      const bool every = coverage == Coverage::kAll || nodes <= kAllMeet;
      EXPECT_DOUBLE_EQ(pairCoverage(log), every ? 1 : nodes / all) << nodes;
    }
}

/// A loss of the size that a run says it detects is found, as long as noise is hardly more than declared.
TEST(Resolution, IsALossThatIsHardlyEverMissed) {
  constexpr int kRuns = 100;
  for (const Noise noise : {Noise::kNormal, Noise::kSkewed, Noise::kPersistentNormal})
    for (const double sigma : {0.005, 0.02, 0.03})
      for (const Plant plant : {Plant::kLink, Plant::kOneNode}) {
        int missed = 0;
        for (uint64_t seed = 0; seed < kRuns; ++seed) {
          WorldSpec world{8, Plant::kNothing, 0, noise, sigma};
          world.severity = runTrial(world, seed).smallestLoss;
          world.plant = plant;
          const TrialResult result = runTrial(world, seed);
          const bool found = result.named + result.wrong + result.unattributable > 0;
          missed += found || result.smallestLoss > world.severity ? 0 : 1;
        }
        EXPECT_LE(missed, 2) << noiseName(noise) << " of " << sigma << ", " << plantName(plant);
      }
}

INSTANTIATE_TEST_SUITE_P(Ring, Trials,
                         ::testing::Combine(::testing::Values(8, 9, 64, 231),
                                            ::testing::Values(Noise::kNormal, Noise::kSkewed)));

}  // namespace
}  // namespace muster::ring::testing
