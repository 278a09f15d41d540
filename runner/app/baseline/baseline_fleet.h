// SPDX-License-Identifier: Apache-2.0
// From the records of a fleet to what learning needs: nodes, figures in groups, and where they came from.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reports/fleet/read/record_stream.h"
#include "runner/sku/learn.h"
#include "runner/sku/learned_profile.h"

namespace muster {

/// What a fleet's records come to.
struct FleetToLearn {
  LearnInput input;
  Provenance provenance;
  std::vector<std::string> remarks;  ///< what the reader should know: records set aside, mixed drivers
  std::vector<std::vector<size_t>> records;  ///< of each node of the input: their indices
  std::string profileName;                   ///< of the example; empty: none
  size_t example = 0;  ///< index of a node that agrees with most, for profile, parameters and peaks
  bool simulated = false;
};

/// Whether a node with a verdict of this outcome is no example of a healthy one.
bool speaksAgainst(Outcome outcome);

/// "a (3 nodes), b (1 node)": values by their number of nodes, the most frequent first.
std::string votesText(const std::map<std::string, size_t>& votes);

/// The value of most nodes, of equals the first by name; empty: there is none.
std::string mostVoted(const std::map<std::string, size_t>& votes);

/// Plan with overrides, devices and profile are those of most records; the others are misfits that say why.
/// `ownBase`: the user gives the base profile, so those of the records may differ. Errors (kUsage): one of
/// them has no majority, simulated records beside real ones, two records of a node's same stage, no record at
/// all. Records of a node that share no stage (jobs of several scopes) are one node.
Result<FleetToLearn> fleetToLearn(const fleet::FleetRecords& records, bool ownBase);

}  // namespace muster
