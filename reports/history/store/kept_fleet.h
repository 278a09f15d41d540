// SPDX-License-Identifier: Apache-2.0
// A fleet record read back: what a later acceptance builds on.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "reports/fleet/read/node_summary.h"
#include "runner/core/result.h"

namespace muster::history {

/// One record that counted, by its digest; the path is relative to the folder that was judged.
struct FleetEntry {
  std::string path;
  std::string sha256;
};

struct FleetMember {
  std::string name;
  fleet::NodeState state = fleet::NodeState::kMissing;
  std::string sku;
  std::vector<FleetEntry> records;
};

/// What a fleet.json says.
struct KeptFleet {
  int64_t number = 0;            ///< in the history, from 1; 0: not from there
  std::filesystem::path folder;  ///< that holds the fleet and its records
  std::string sha256;            ///< of fleet.json
  Acceptance acceptance = Acceptance::kIncomplete;
  bool simulated = false;
  std::string plan;
  std::string planSha256;
  std::vector<std::string> overrides;  ///< the --set arguments
  std::string expectedFrom;
  bool sameMachine = false;     ///< its nodes were allowed to share a machine
  bool rejectOutliers = false;  ///< outliers within limits were rejected too
  bool allowRejudged = false;   ///< records that were judged again were allowed
  std::string waiversFrom;      ///< the fleet's own waiver file; empty: none was given
  bool clauses = false;         ///< it was judged by the requirements of a contract
  double started = 0;           ///< seconds since 1970
  double finished = 0;
  std::vector<FleetMember> nodes;  ///< in the order expected
};

/// The fleet.json of a folder: in it, or in its fleet/, where runs through Slurm have it. Empty: there is
/// none.
std::filesystem::path fleetFileIn(const std::filesystem::path& folder);

/// Where the records of such a folder are: its records/ if there is one, else the folder.
std::filesystem::path recordsFolderOf(const std::filesystem::path& folder);

/// Reads it. kNotFound: there is none; kProtocol: it is torn, of another schema or contradicts itself.
Result<KeptFleet> readFleetIn(const std::filesystem::path& folder);

}  // namespace muster::history
