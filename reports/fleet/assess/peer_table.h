// SPDX-License-Identifier: Apache-2.0
// The figures of a fleet as tables of like SKU: devices by metrics, for peers and for distributions.
#pragma once

#include "reports/fleet/fleet_record.h"
#include "reports/fleet/peers/peers.h"

namespace muster::fleet {

/// The group of one SKU, and where its nodes stand in the fleet.
struct PeerTable {
  PeerGroup group;
  std::vector<size_t> nodes;   ///< of each PeerNode, its index in Fleet::nodes
  std::vector<uint32_t> keys;  ///< of each metric, one of the figures that it holds
  bool nodeWide = false;       ///< figures of no device: each node stands as one device without a name
};

struct PeerTables {
  std::vector<PeerTable> tables;
  std::vector<RecordFinding> findings;  ///< nodes whose records say otherwise how a metric is compared
  std::vector<std::string> notes;       ///< what was left out
};

/// Groups of nodes that count, one per SKU and number of devices, with the figures that say how fast, hot and
/// hungry their devices are; and the same of the nodes themselves, where they have figures of no device.
/// Figures that differ only in `peer` (GPU pairs) are one metric, the median over the peers. Those that
/// differ in direction, peak or being informational are not: of these the nodes without a majority are named,
/// and out of the accepted ones. Metrics whose median is not above zero (throttled seconds of healthy nodes)
/// have limits of their own and are left out, and so are those that fewer than one device in 64 has.
PeerTables peerTables(const FleetRecords& records, FleetNodes& nodes);

/// Fills expected and tolerance of the table's metrics from the profile under which its nodes were judged: of
/// its min, max, baseline and of_peak expectations the strictest one that covers the figure. A metric without
/// one, and a table without a known profile, are left as they are.
void addExpected(PeerTable& table, const FleetRecords& records, const FleetOptions& options,
                 const FleetNodes& nodes);

/// How each metric of a table is spread.
std::vector<Distribution> distributionsOf(const PeerTable& table, const FleetRecords& records);

/// Fills worstShare and worstFigure of the table's nodes; `distributions` are those of the same table.
void addWorstShares(const PeerTable& table, const std::vector<Distribution>& distributions,
                    FleetNodes& nodes);

}  // namespace muster::fleet
