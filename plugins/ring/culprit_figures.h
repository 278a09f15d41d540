// SPDX-License-Identifier: Apache-2.0
// What the pairs of a faulty component reached, beside what the other pairs reached.
#pragma once

#include <optional>
#include <vector>

#include "plugins/ring/meter.h"
#include "plugins/ring/solver/solver.h"

namespace muster::ring {

/// Medians over pairs of one rail, in B/s or s.
struct CulpritFigures {
  double measured = 0;
  double peers = 0;
};

/// Of the rail on which the component is slowest, beside pairs of no component in `all`; nothing where there
/// are none. Of an open question its slowest pair counts.
std::optional<CulpritFigures> figuresOf(const Culprit& culprit, const std::vector<Culprit>& all,
                                        const Topology& topology, const std::vector<PairFigures>& figures);

}  // namespace muster::ring
