// SPDX-License-Identifier: Apache-2.0
// Suspects: devices, nodes, links, switches and rails that should be looked at, each with its evidence.
#pragma once

#include "reports/fleet/assess/deferred.h"
#include "reports/fleet/blame/blame.h"
#include "reports/fleet/fleet_record.h"

namespace muster::fleet {

/// What the peers name, and how each figure is spread among them.
struct PeerComparison {
  std::vector<Suspect> suspects;
  std::vector<Distribution> distributions;
  KeyFigures keyFigures;
  std::vector<RecordFinding> findings;  ///< records that others contradict
  std::vector<std::string> notes;       ///< figures that are too few to tell
};

/// Compares nodes of like SKU. Notes in each node how far it is behind; rejects those that its peers name,
/// where the options ask for that.
Result<PeerComparison> comparePeers(const FleetRecords& records, const FleetOptions& options,
                                    FleetNodes& nodes);

struct FailureFindings {
  std::vector<Suspect> list;
  size_t left = 0;  ///< parts that one node's records name beyond kMostNamedByNode
};
/// No node's records push the findings of others out of the list.
inline constexpr size_t kMostNamedByNode = 1000;

/// Devices, links and nodes that failed their own limits or fleet-relative ones, or that others name.
FailureFindings findFailures(const FleetRecords& records, const RunTable& runs, const BlameTable& blame,
                             const DeferredVerdicts& deferred, const FleetNodes& nodes);

/// Switches under which far more nodes are suspect than elsewhere, and rails: the same device number on many
/// nodes.
std::vector<Suspect> findCommonCauses(const std::vector<Suspect>& suspects, const FleetRecords& records,
                                      const Topology& topology, const FleetNodes& nodes);

}  // namespace muster::fleet
