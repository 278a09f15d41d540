// SPDX-License-Identifier: Apache-2.0
// Confirmation: what is about to be named is measured again at later times, beside pairs that are healthy.
// Another process that loads a node for a while slows its pairs down as a fault does, but not for ever.
#pragma once

#include <vector>

#include "plugins/ring/solver/lane_figures.h"
#include "plugins/ring/solver/solver.h"

namespace muster::ring {

constexpr int kVisits = 6;  ///< of whatever is about to be named

/// What the visits say of one culprit.
struct Support {
  int visits = 0;     ///< that judged it
  int slow = 0;       ///< in which it was as slow as before, or nearly
  int disturbed = 0;  ///< that cannot be judged: other processes kept a host's ranks from the CPU
  double transient =
      1;  ///< probability that a healthy component looks like this, by what healthy pairs did in this run
};

/// Whether another node of the same machine is named too: then it may be the machine, or what else runs on
/// it.
bool hasCommonCause(const RoundLog& log, const Culprit& culprit, const std::vector<Culprit>& culprits);

/// `culprits`: all that the rounds named, this one among them; `lane` its telling lane.
Support supportOf(const RoundLog& log, const LaneFigures& figures, size_t lane, const Culprit& culprit,
                  const std::vector<Culprit>& culprits);

}  // namespace muster::ring
