// SPDX-License-Identifier: Apache-2.0
// The leaf switch of each node of the group, from the file that operators have.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plugins/ring/solver/pairing.h"
#include "runner/core/result.h"

namespace muster::ring {

/// The leaf of each of `nodes` (names in the order of the group); a switch with nodes of its own is a leaf. A
/// node that no leaf has, or two have, is an error with the line.
Result<Topology> leafSwitches(std::string_view text, const std::string& path,
                              const std::vector<std::string>& nodes);

}  // namespace muster::ring
