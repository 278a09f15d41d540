// SPDX-License-Identifier: Apache-2.0
// What a rank tells the host: its own figures, the culprits that concern it; rank 0 all pairs and all
// culprits.
#pragma once

#include <vector>

#include "plugins/ring/members.h"
#include "plugins/ring/meter.h"
#include "plugins/ring/solver/lane_figures.h"
#include "plugins/ring/solver/solver.h"
#include "plugins/sdk/plugin.h"

namespace muster::ring {

/// Everything that all ranks know alike at the end.
struct Findings {
  const RoundLog* log = nullptr;
  std::vector<PairFigures> figures;
  std::vector<Culprit> culprits;
  Resolution resolution;
};

/// "node n3", "link n3 - n4, rail 5", "n3 rail 5", "uplink of leaf1", "n3 or n4".
std::string culpritText(const Culprit& culprit, const Members& members, const Topology& topology);

/// Member numbers "#12" of an evidence become names.
std::string withNames(const std::string& evidence, const Members& members);

/// Whether a culprit is reported by this rank: rank 0 reports all, others what is on their node and rail;
/// what concerns all rails of a node is reported by its first rank.
bool concerns(const Culprit& culprit, const Members& members, const Topology& topology, int rank);

Status reportFindings(const sdk::Host& host, const Members& members, const Communicator& communicator,
                      const Findings& findings, double now);

}  // namespace muster::ring
