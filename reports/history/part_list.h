// SPDX-License-Identifier: Apache-2.0
// Which parts a node has, and how that differs from another day: by serial, or by UUID where a part has none.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reports/fleet/read/node_summary.h"
#include "reports/history/delta.h"

namespace muster::history {

/// Where a part is.
struct PartPlace {
  std::string node;
  std::string device;
};

/// The parts of one node by their places. A device without serial and UUID is none; so is one whose serial a
/// second device of the node has as well ("0", "N/A"), for that is no serial.
struct NodeParts {
  std::map<std::string, std::string> byDevice;  ///< "gpu3" -> serial

  [[nodiscard]] bool empty() const { return byDevice.empty(); }
  /// The device that holds `part`, or an empty text.
  [[nodiscard]] std::string placeOf(const std::string& part) const;
};

NodeParts partsOf(const fleet::NodeSummary& node);

/// Places whose part is another one, in the order of their names. A part that only has another place in its
/// node is a change as well: its links and its cooling are others.
std::vector<PartChange> partChanges(const NodeParts& before, const NodeParts& after);

/// All places of each part.
std::map<std::string, std::vector<PartPlace>> partPlaces(
    const std::vector<std::pair<std::string, NodeParts>>& nodes);

/// The same for parts that have one place; what is found twice in a fleet cannot be followed.
std::map<std::string, PartPlace> partOwners(const std::vector<std::pair<std::string, NodeParts>>& nodes);

/// Versions that differ, of what both records name: the node's software ("driver: 580.95 -> 590.10") and the
/// devices' VBIOS ("gpu3 vbios: ...").
std::vector<std::string> softwareChanges(const fleet::NodeSummary& before, const fleet::NodeSummary& after,
                                         const fleet::FleetNames& names);

}  // namespace muster::history
