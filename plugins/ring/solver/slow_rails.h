// SPDX-License-Identifier: Apache-2.0
// Rails that are slow between most nodes, as by their switch. Pairs are compared within a rail, where all of
// these look alike: here a rail is compared with the others.
#pragma once

#include <string>
#include <vector>

#include "plugins/ring/solver/round_log.h"

namespace muster::ring {

struct SlowRail {
  std::string rail;
  double loss = 0;     ///< a logarithm (Baseline): the median over the pairs
  int nodes = 0;       ///< that were slow with each other one that they met
  int visits = 0;      ///< later measurements (Visit)
  int slowVisits = 0;  ///< in which it was slow, too
};

/// Three rails and four nodes at least: with fewer, a rail cannot be told from the NICs of a node.
std::vector<SlowRail> findSlowRails(const RoundLog& log);

}  // namespace muster::ring
