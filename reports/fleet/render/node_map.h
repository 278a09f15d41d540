// SPDX-License-Identifier: Apache-2.0
// Thousands of nodes as one drawing: a cell for each, coloured by its state or by how far its figures are
// off.
#pragma once

#include <string>

#include "reports/fleet/fleet_record.h"

namespace muster::fleet {

inline constexpr size_t kMapColumns = 100;
inline constexpr int kMapCell = 11;  ///< of which one is the gap

/// SVG of the nodes in the order expected, kMapColumns in a row; one path per class, so that it draws at
/// once. By state: classes "state-accepted" and so on; by figures: "heat-0" (within 2% of the median) to
/// "heat-4", "heat-none".
std::string stateMap(const Fleet& fleet);
std::string figureMap(const Fleet& fleet);

/// A small histogram of counts, 120 x 28.
std::string histogram(const std::vector<size_t>& bins);

/// 0 to 4: how far a node's worst figure is below the median of its like; -1 for a node without figures.
int heatLevel(const FleetNode& node);

}  // namespace muster::fleet
