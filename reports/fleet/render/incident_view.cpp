// SPDX-License-Identifier: Apache-2.0
// The table of findings: one row for each cause.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "reports/fleet/render/fleet_sections.h"
#include "runner/core/text.h"

namespace muster::fleet {
namespace {

constexpr size_t kMostIncidents = 200;
constexpr size_t kMostNodesInRow = 4;

}  // namespace

std::vector<View> linesOf(const std::vector<std::string>& lines) {
  return viewsOf(lines, [](const std::string& line) {
    View view;
    view.text("line", printable(line, 600));
    return view;
  });
}

ReportLinks::ReportLinks(const FleetRecords& records, std::string recordsAt)
    : records_(records), recordsAt_(std::move(recordsAt)) {}

std::string ReportLinks::of(const FleetNode& node) const {
  if (recordsAt_.empty() || node.records.empty()) return "";
  const std::string& path = records_.nodes[node.records.front()].path;
  const size_t slash = path.rfind('/');
  const std::string whole =
      recordsAt_ + "/" + (slash == std::string::npos ? "" : path.substr(0, slash + 1)) + "report.html";
  std::string link;
  for (const unsigned char c : whole)
    link +=
        std::isalnum(c) != 0 || std::string_view("._~/-").find(static_cast<char>(c)) != std::string_view::npos
            ? std::string(1, static_cast<char>(c))
            : fmt::format("%{:02X}", c);
  return link;
}

void addIncidents(View& page, const Fleet& fleet, const ReportLinks& links,
                  const AcceptanceDocument& document) {
  std::map<std::string, const FleetNode*> byName;
  for (const FleetNode& node : fleet.nodes) byName.emplace(node.name, &node);
  std::vector<View> rows;
  for (const Incident& incident : fleet.incidents) {
    if (rows.size() == kMostIncidents) break;
    View view;
    view.text("number", std::to_string(rows.size() + 1)).text("urgency", incident.urgencyName());
    std::vector<View> nodes;
    for (const std::string& name : incident.nodes) {
      if (nodes.size() == kMostNodesInRow) break;
      const auto node = byName.find(name);
      View one;
      one.text("node", name).text("href", node == byName.end() ? "" : links.of(*node->second));
      nodes.push_back(std::move(one));
    }
    const size_t left = incident.nodeCount - std::min(incident.nodeCount, nodes.size());
    view.list("nodes", std::move(nodes)).text("nodes_left", left > 0 ? std::to_string(left) : "");
    view.text("part", incident.part).text("serial", incident.serial).text("place", incident.place);
    view.text("cause", incident.cause).text("limit_source", incident.limitSource);
    view.text("action", incident.action).text("command", incident.command);
    view.list("beneath", linesOf(incident.beneath))
        .text("beneath_left", incident.beneathLeft > 0 ? std::to_string(incident.beneathLeft) : "");
    view.text("beneath_count", std::to_string(incident.beneath.size() + incident.beneathLeft));
    const FindingOwner* owner = document.ownerOf(
        {incident.nodes.empty() ? "" : incident.nodes.front(), incident.part, incident.serial, ""});
    view.text("owner", owner == nullptr ? "" : owner->name + (owner->due.empty() ? "" : ", " + owner->due));
    rows.push_back(std::move(view));
  }
  page.text("incidents_count", std::to_string(fleet.incidents.size()));
  const size_t left = fleet.incidents.size() - rows.size();
  page.list("incidents", std::move(rows)).text("incidents_left", left > 0 ? std::to_string(left) : "");
}

}  // namespace muster::fleet
