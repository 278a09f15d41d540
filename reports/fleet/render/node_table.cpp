// SPDX-License-Identifier: Apache-2.0
// All nodes as rows of one table.
#include <fmt/format.h>

#include <cmath>

#include "reports/fleet/render/fleet_sections.h"
#include "reports/html/plots/axis.h"
#include "runner/core/text.h"
#include "runner/record/markup.h"

namespace muster::fleet {
namespace {

/// The unit of a column; all its values are in it.
DisplayUnit unitOf(const KeyFigure& figure) {
  return displayUnit(figure.median, figure.unit);
}

std::string valueCell(const FleetNode& node, const Fleet& fleet, size_t k) {
  const double value = node.keyValues[k];
  if (std::isnan(value)) return "<td>";
  // As many digits in each row.
  std::string text = fmt::format("{:#.4g}", value * unitOf(fleet.keyFigures[k]).factor);
  if (text.ends_with('.')) text.pop_back();
  return "<td>" + text;
}

/// "8.8% below the median" as a share: "−8.8%".
std::string shortfallCell(const FleetNode& node) {
  if (std::isnan(node.worstShare)) return "<td>";
  const double share = 100 * (node.worstShare - 1);
  return fmt::format("<td data-sort={:.2f}>{}{:.1f}%", share, share < 0 ? "−" : "+", std::abs(share));
}

}  // namespace

std::string keyColumns(const Fleet& fleet) {
  std::string heads;
  for (size_t k = 0; k < kKeyFigureCount; ++k) {
    const KeyFigure& figure = fleet.keyFigures[k];
    if (figure.points.empty()) continue;
    const std::string unit = unitOf(figure).suffix;
    heads +=
        fmt::format("<th class=\"num\" title=\"{}\">{}{}</th>", escapeMarkup(printable(figure.name, 120)),
                    kKeyFigureNames[k], unit.empty() ? "" : "<small>" + escapeMarkup(unit) + "</small>");
  }
  return heads + "<th class=\"num\">Worst<small>against median</small></th>";
}

std::string nodeRows(const Fleet& fleet, const ReportLinks& links) {
  std::string rows;
  for (size_t i = 0; i < fleet.nodes.size(); ++i) {
    const FleetNode& node = fleet.nodes[i];
    const std::string name = escapeMarkup(node.name);
    const std::string link = links.of(node);
    rows += fmt::format("<tr id=n{} class=s-{}><th>{}", i, nameOf(node.state),
                        link.empty() ? name : fmt::format("<a href=\"{}\">{}</a>", escapeMarkup(link), name));
    rows += node.rack.empty() ? "<td>"
                              : fmt::format("<td>{}, {}", escapeMarkup(printable(node.rack, 60)), node.slot);
    rows += fmt::format("<td>{}", nameOf(node.state));
    for (size_t k = 0; k < kKeyFigureCount; ++k)
      if (!fleet.keyFigures[k].points.empty()) rows += valueCell(node, fleet, k);
    rows += shortfallCell(node);
    rows +=
        node.reason.empty() ? "<td>\n" : fmt::format("<td>{}\n", escapeMarkup(printable(node.reason, 160)));
  }
  return rows;
}

}  // namespace muster::fleet
