// SPDX-License-Identifier: Apache-2.0
// Simulated fleets for the statistics of peers: figures of many nodes with known noise and known defects.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reports/fleet/peers/peers.h"

namespace muster::fleet::testing {

enum class Noise {
  kNormal,
  kLeftSkewed,      ///< a mirrored gamma of shape 16: skewness -0.5, slow values reach further than fast ones
  kVeryLeftSkewed,  ///< of shape 4: skewness -1
};

const char* noiseName(Noise noise);

/// A fleet whose devices all have the same metrics.
struct SimFleet {
  size_t nodes = 1000;
  size_t devices = 8;        ///< of each node
  double sigma = 0.01;       ///< standard deviation of a figure, as a share: of the device's own part and
                             ///< the part common to its node together
  double commonShare = 0.5;  ///< of the variance, what is common to the devices of a node
  Noise noise = Noise::kNormal;
  size_t computeBound = 7, memoryBound = 2, linkBound = 1;  ///< metrics of each class
};

/// Something that is worse than it should be.
struct Defect {
  size_t node = 0;
  size_t device = 0;
  bool wholeNode = false;       ///< all devices of the node
  std::vector<size_t> metrics;  ///< indices
  double size = 0;              ///< a share of the figure
};

/// The figures of such a fleet; the same seed gives the same.
PeerGroup simulate(const SimFleet& fleet, uint64_t seed, const std::vector<Defect>& defects = {});

/// The first `count` metrics.
std::vector<size_t> firstMetrics(size_t count);

}  // namespace muster::fleet::testing
