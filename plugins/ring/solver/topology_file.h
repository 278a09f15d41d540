// SPDX-License-Identifier: Apache-2.0
// Leaf switches from a Slurm topology.conf (topology/tree): the file that operators have.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plugins/ring/solver/pairing.h"
#include "runner/core/result.h"

namespace muster::ring {

/// Expands "n[001-016,020],login" in order. At most `most` names; anything else is kUsage.
Result<std::vector<std::string>> expandHostList(std::string_view text, size_t most = 65536);

/// The leaf of each of `nodes` (names in the order of the group). A switch with `Nodes=` is a leaf. A node
/// that no leaf has, or two have, is an error with the line.
Result<Topology> parseTopology(std::string_view text, const std::string& path,
                               const std::vector<std::string>& nodes);

}  // namespace muster::ring
