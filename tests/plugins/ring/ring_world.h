// SPDX-License-Identifier: Apache-2.0
// A cluster on paper for the ring: planted faults, noisy figures, and a trial of schedule and solver on it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plugins/ring/solver/solver.h"

namespace muster::ring::testing {

enum class Noise {
  kNormal,            ///< each sample
  kSkewed,            ///< each sample; a gamma's long tail towards slow (skewness -1)
  kPersistentNormal,  ///< one draw for all samples of a meeting: taking more samples does not help
  kPersistentSkewed,
};
const char* noiseName(Noise noise);

enum class Plant { kNothing, kOneNode, kThreeNodes, kPercentOfNodes, kLink, kNodeRail, kUplink };
const char* plantName(Plant plant);

/// What other processes and other traffic do to healthy nodes: episodes in which all pairs of a host are
/// slow.
struct Load {
  double episodes = 0;     ///< that begin per host and second
  double shortest = 0.05;  ///< seconds; lengths are log-uniform up to `longest`
  double longest = 5;
  double least = 0.1;  ///< share of the speed that they cost; uniform up to `most`
  double most = 0.8;
  double visible = 0.5;  ///< share of them that the kernel tells the ranks of, as waiting for a CPU
  int nodesPerHost = 1;  ///< what hits a host hits all its nodes
};

struct WorldSpec {
  int nodes = 8;
  Plant plant = Plant::kNothing;
  double severity = 0;  ///< share of the speed that a fault costs
  Noise noise = Noise::kNormal;
  double sigma = 0.02;
  int samples = 5;     ///< of each pair in each round; the median counts, as the plugin does it
  bool rails = false;  ///< eight rails that are measured one by one; always so for kNodeRail
  Load load{};
  Coverage coverage = Coverage::kQuick;  ///< kAll: a slow link may be between any two nodes
};

struct Fault {
  Culprit::Kind kind = Culprit::Kind::kNode;
  std::vector<int> nodes;
  std::string rail;
  int leaf = -1;
};

/// Something that was named, and whether it was planted.
struct Named {
  double confidence = 0;
  bool right = false;
};

struct TrialResult {
  int faults = 0;
  int named = 0;           ///< planted faults that were named as what they are
  int wrong = 0;           ///< healthy nodes, links, rails or leaves named
  int unattributable = 0;  ///< culprits left open
  int rounds = 0;
  int looks = 0;            ///< times that a round remeasured inconclusive pairs
  double smallestLoss = 0;  ///< that the run says it can detect
  bool blind = false;       ///< the run ends with an error, as noise hides too much
  int rejecting = 0;        ///< culprits that are not undecided
  std::vector<Named> findings;
};

/// One trial; a pure function of both arguments.
TrialResult runTrial(const WorldSpec& spec, uint64_t seed);

}  // namespace muster::ring::testing
