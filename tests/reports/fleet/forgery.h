// SPDX-License-Identifier: Apache-2.0
// Generated fleets: with one record that is not what it must be, and honest ones. For the test that a sample
// of them is judged rightly, and for `./dev bench attack forgery`, which takes ten thousand.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "reports/fleet/fleet_record.h"

namespace muster::testing {

/// One fleet on paper.
struct MadeFleet {
  std::string kind;  ///< what was done to it: "copied: boot id"
  bool forged = false;
  std::vector<std::pair<std::string, std::string>> files;  ///< path and text of each record
  fleet::FleetOptions options;
  std::vector<std::string> arguments;  ///< the same for `muster fleet`, beside --expect
  std::string expectText;              ///< the file for --expect
  /// Nodes or paths of records; a finding must name one of them. Empty for honest fleets.
  std::vector<std::string> toName;
};

/// A fleet of three to eight nodes in which one record was forged, copied, renamed, re-judged, judged by
/// looser limits, or is stale, foreign or of a wrong SKU. The same seed gives the same.
MadeFleet forgedFleet(uint64_t seed);

/// An honest fleet, with what honest fleets may have: two SKUs that are listed, records of two jobs, resumed
/// runs, missing or meaningless serials, machine ids of an image, records of an earlier run beside those that
/// count, unexpected nodes, simulated nodes, machines that are shared on purpose.
MadeFleet honestFleet(uint64_t seed);

/// Reads and judges it in this process. What is wrong with the verdict; empty: it is right.
std::string wrongVerdict(const MadeFleet& made);

}  // namespace muster::testing
