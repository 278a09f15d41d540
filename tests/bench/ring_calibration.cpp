// SPDX-License-Identifier: Apache-2.0
// ring-calibration: of what the ring names with some confidence, how much is right? Over generated clusters
// with and without a fault, under noise with long tails, and loads that hit a host for a while.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string_view>

#include "tests/plugins/ring/ring_world.h"

namespace muster::ring::testing {
namespace {

using Random = std::mt19937_64;

double uniform(Random& random, double low, double high) {
  return low + (high - low) * (static_cast<double>(random() >> 11) * 0x1p-53);
}
double logUniform(Random& random, double low, double high) {
  return std::exp(uniform(random, std::log(low), std::log(high)));
}
template <typename T, size_t N>
T oneOf(Random& random, const std::array<T, N>& choices) {
  return choices[static_cast<size_t>(uniform(random, 0, N))];
}

/// A cluster as an operator may meet it: half of them without a fault, two thirds of them under some load.
WorldSpec drawWorld(Random& random) {
  WorldSpec world;
  world.nodes = oneOf(random, std::array{3, 4, 4, 5, 6, 8, 8, 9, 16, 17, 32, 64});
  const bool leaves = world.nodes >= 8;
  if (uniform(random, 0, 1) < 0.5)
    world.plant = leaves ? oneOf(random, std::array{Plant::kOneNode, Plant::kLink, Plant::kNodeRail,
                                                    Plant::kUplink, Plant::kThreeNodes})
                         : oneOf(random, std::array{Plant::kOneNode, Plant::kLink, Plant::kNodeRail});
  world.severity = logUniform(random, 0.05, 0.9);
  world.noise = oneOf(
      random, std::array{Noise::kNormal, Noise::kSkewed, Noise::kPersistentNormal, Noise::kPersistentSkewed});
  world.sigma = logUniform(random, 0.003, 0.06);
  if (uniform(random, 0, 1) < 0.2) world.coverage = Coverage::kAll;
  if (uniform(random, 0, 1) < 1.0 / 3) return world;
  world.load.episodes = logUniform(random, 0.003, 1);
  world.load.longest = oneOf(random, std::array{0.5, 2.0, 5.0, 10.0, 30.0, 120.0});
  world.load.least = uniform(random, 0.05, 0.4);
  world.load.most = uniform(random, 0.4, 0.95);
  world.load.visible = oneOf(random, std::array{0.0, 0.5, 1.0});
  world.load.nodesPerHost = oneOf(random, std::array{1, 1, 2, world.nodes});
  return world;
}

/// As the runner judges what the plugin reports.
const char* verdictOf(const TrialResult& result) {
  if (result.rejecting > 0) return "rejected";
  const int undecided = result.named + result.wrong + result.unattributable;
  return result.blind || undecided > 0 ? "incomplete" : "accepted";
}

}  // namespace
}  // namespace muster::ring::testing

/// For each run a line "run SEED faults named wrong open verdict smallest severity" and how it was drawn, and
/// for each finding a line "finding CONFIDENCE RIGHT SEED".
int main(int argc, char** argv) {
  using namespace muster::ring::testing;
  if (argc != 3) {
    fmt::print(stderr, "usage: ring-calibration RUNS SEED\n");
    return 2;
  }
  const auto runs = std::strtoull(argv[1], nullptr, 10), seed = std::strtoull(argv[2], nullptr, 10);
  for (uint64_t i = 0; i < runs; ++i) {
    const uint64_t own = seed * 1000003 + i;
    Random random(own);
    const WorldSpec world = drawWorld(random);
    const TrialResult result = runTrial(world, own);
    fmt::print("run {} {} {} {} {} {} {:.4f} {:.4f} nodes={} {}, {} noise of {:.3f}, load {:.3f} {} {} {}\n",
               own, result.faults, result.named, result.wrong, result.unattributable, verdictOf(result),
               result.smallestLoss, world.severity, world.nodes, plantName(world.plant),
               noiseName(world.noise), world.sigma, world.load.episodes, world.load.longest,
               world.load.visible, world.load.nodesPerHost);
    for (const Named& named : result.findings)
      fmt::print("finding {:.6f} {} {}\n", named.confidence, named.right ? 1 : 0, own);
  }
  return 0;
}
