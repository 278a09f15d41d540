// SPDX-License-Identifier: Apache-2.0
// Draws the SVG map of nodes.
#include "reports/fleet/render/node_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace muster::fleet {
namespace {

/// One SVG with a path for each class; `classOf(node)` names it.
template <typename F>
std::string mapOf(const Fleet& fleet, const std::string& id, const std::string& label, F classOf) {
  std::map<std::string, std::string> paths;
  for (size_t i = 0; i < fleet.nodes.size(); ++i)
    paths[classOf(fleet.nodes[i])] +=
        fmt::format("M{} {}h{}v{}h-{}z", i % kMapColumns * kMapCell, i / kMapColumns * kMapCell, kMapCell - 1,
                    kMapCell - 1, kMapCell - 1);
  const size_t columns = std::min(fleet.nodes.size(), kMapColumns);
  const size_t rows = (fleet.nodes.size() + kMapColumns - 1) / kMapColumns;
  std::string svg = fmt::format(
      "<svg class=\"node-map\" id=\"{}\" role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {} {}\" "
      "width=\"{}\" height=\"{}\">",
      id, label, columns * kMapCell, rows * kMapCell, columns * kMapCell, rows * kMapCell);
  for (const auto& [name, path] : paths) svg += fmt::format("<path class=\"{}\" d=\"{}\"/>", name, path);
  return svg + "</svg>";
}

}  // namespace

int heatLevel(const FleetNode& node) {
  if (std::isnan(node.worstShare)) return -1;
  const double below = 1 - node.worstShare;
  return below < 0.02 ? 0 : below < 0.05 ? 1 : below < 0.1 ? 2 : below < 0.2 ? 3 : 4;
}

std::string stateMap(const Fleet& fleet) {
  return mapOf(fleet, "state-map", "All nodes by state", [](const FleetNode& node) {
    return fmt::format("state-{}{}", nameOf(node.state),
                       node.suspect && node.state == NodeState::kAccepted ? " is-suspect" : "");
  });
}

std::string figureMap(const Fleet& fleet) {
  return mapOf(fleet, "figure-map", "All nodes by largest shortfall", [](const FleetNode& node) {
    const int level = heatLevel(node);
    return level < 0 ? std::string("heat-none") : fmt::format("heat-{}", level);
  });
}

std::string histogram(const std::vector<size_t>& bins) {
  constexpr int kWidth = 120;
  constexpr int kHeight = 28;
  const size_t most = std::max<size_t>(1, bins.empty() ? 0 : *std::max_element(bins.begin(), bins.end()));
  const double step = static_cast<double>(kWidth) / static_cast<double>(std::max<size_t>(1, bins.size()));
  std::string path;
  for (size_t i = 0; i < bins.size(); ++i) {
    if (bins[i] == 0) continue;
    // By its root: a single odd one among thousands must be seen.
    const double height =
        std::max(1.5, kHeight * std::sqrt(static_cast<double>(bins[i]) / static_cast<double>(most)));
    path += fmt::format("M{:.1f} {}v-{:.1f}h{:.1f}V{}z", static_cast<double>(i) * step, kHeight, height,
                        step - 0.5, kHeight);
  }
  return fmt::format(
      "<svg class=\"histogram\" viewBox=\"0 0 {} {}\" width=\"{}\" height=\"{}\" aria-hidden=\"true\">"
      "<path d=\"{}\"/></svg>",
      kWidth, kHeight, kWidth, kHeight, path);
}

}  // namespace muster::fleet
