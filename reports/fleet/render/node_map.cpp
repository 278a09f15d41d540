// SPDX-License-Identifier: Apache-2.0
// The map of nodes by rack and slot, and small histograms.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "reports/fleet/render/fleet_sections.h"
#include "runner/core/text.h"
#include "runner/record/markup.h"

namespace muster::fleet {
namespace {

/// How far behind the median: 0 within 2%, 1 within 5%, 2 within 10%, 3 more; temperatures by 3, 6 and 10
/// degrees.
char levelOf(const FleetNode& node, size_t k) {
  const double share = node.keyShares[k];
  if (std::isnan(share)) return 'x';
  if (k == kTemperature) return share < 3 ? '0' : share < 6 ? '1' : share < 10 ? '2' : '3';
  const double below = 1 - share;
  return below < 0.02 ? '0' : below < 0.05 ? '1' : below < 0.1 ? '2' : '3';
}

/// The part of names that all have in common at their begin, up to the last separator or digit run.
size_t commonPrefix(const FleetNodes& nodes) {
  if (nodes.size() < 2) return 0;
  const std::string& first = nodes.front().name;
  size_t length = first.size();
  for (const FleetNode& node : nodes) {
    size_t same = 0;
    while (same < std::min(length, node.name.size()) && node.name[same] == first[same]) ++same;
    length = same;
  }
  // Digits stay together, but for zeros that all have.
  while (length > 0 && std::isdigit(static_cast<unsigned char>(first[length - 1])) != 0 &&
         first[length - 1] != '0')
    --length;
  return length;
}

struct Rack {
  std::string name;
  std::vector<size_t> nodes;  ///< by slot
};

/// The racks of the topology; without one, blocks in the expected order.
std::vector<Rack> racksOf(const Fleet& fleet) {
  const bool placed =
      std::any_of(fleet.nodes.begin(), fleet.nodes.end(), [](const auto& n) { return !n.rack.empty(); });
  std::vector<Rack> racks;
  if (placed) {
    std::map<std::string, std::vector<size_t>> byRack;
    for (size_t i = 0; i < fleet.nodes.size(); ++i) byRack[fleet.nodes[i].rack].push_back(i);
    for (auto& [name, nodes] : byRack) {
      std::stable_sort(nodes.begin(), nodes.end(),
                       [&](size_t a, size_t b) { return fleet.nodes[a].slot < fleet.nodes[b].slot; });
      racks.push_back({name.empty() ? "no rack" : name, std::move(nodes)});
    }
    return racks;
  }
  const size_t size = fleet.nodes.size() <= 128 ? 8 : 32;
  for (size_t i = 0; i < fleet.nodes.size(); ++i) {
    if (i % size == 0)
      racks.push_back({fmt::format("{}–{}", i + 1, std::min(i + size, fleet.nodes.size())), {}});
    racks.back().nodes.push_back(i);
  }
  return racks;
}

/// What of a node that is not accepted fits into its cell: "GPU 5", "missing".
std::map<std::string, std::string> notesOf(const Fleet& fleet) {
  std::map<std::string, std::string> notes;
  for (const Incident& incident : fleet.incidents)
    if (incident.nodeCount == 1 && incident.blocks() && !incident.nodes.empty() && incident.kind == "device")
      notes.emplace(incident.nodes.front(), printable(incident.part, 8));
  return notes;
}

}  // namespace

std::string rackMap(const Fleet& fleet) {
  const size_t prefix = commonPrefix(fleet.nodes);
  const auto notes = notesOf(fleet);
  std::string html;
  for (const Rack& rack : racksOf(fleet)) {
    html += fmt::format("<div class=rack><b>{}</b>", escapeMarkup(printable(rack.name, 40)));
    for (const size_t i : rack.nodes) {
      const FleetNode& node = fleet.nodes[i];
      std::string note;
      if (const auto at = notes.find(node.name); at != notes.end())
        note = at->second;
      else if (node.state != NodeState::kAccepted)
        note = nameOf(node.state);
      html += fmt::format(
          "<a href=#n{} class=\"s-{}{} a{} b{} c{} d{}\">{}{}</a>", i, nameOf(node.state),
          node.suspect && node.state == NodeState::kAccepted ? " flagged" : "", levelOf(node, 0),
          levelOf(node, 1), levelOf(node, 2), levelOf(node, 3),
          escapeMarkup(printable(node.name.size() > prefix ? node.name.substr(prefix) : node.name, 24)),
          note.empty() ? "" : "<i>" + escapeMarkup(note) + "</i>");
    }
    html += "</div>\n";
  }
  return html;
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
