// SPDX-License-Identifier: Apache-2.0
// Estimates tests whose time follows from their work and the rates of the machine.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runner/metrics/expectation.h"
#include "runner/plan/plan.h"

namespace muster {

/// The machine that an estimate is about.
struct EstimatedNode {
  int ranks = 1;  ///< of the stage on this node
  int devices = 1;
  int nodes = 1;  ///< of the stage's group
  int ports = 1;  ///< NICs
  bool simulated = false;
  bool gpus = true;  ///< else it is this machine's CPU
  std::map<std::string, double> peaks;  ///< of the profile, and of the network
  std::vector<Expectation> limits;      ///< of the profile
  double memory = 0;                    ///< bytes of a device; 0: not known
};

/// Seconds of one case: its bytes and operations by the shares of the peaks that healthy devices reach.
/// Nothing for other tests, and where a rate is not known.
std::optional<double> workSeconds(const Stage& stage, const Case& c, const EstimatedNode& node);

}  // namespace muster
