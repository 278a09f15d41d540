// SPDX-License-Identifier: Apache-2.0
// Prints the summary of `muster fleet`.
#include "reports/fleet/render/fleet_terminal.h"

#include <fmt/format.h>

#include <algorithm>

#include "reports/fleet/render/fleet_sections.h"
#include "reports/terminal/wrap.h"
#include "runner/core/text.h"

namespace muster::fleet {
namespace {

constexpr size_t kMostLines = 12;
constexpr size_t kMostBeneath = 4;
constexpr size_t kLongestLine = 2000;

class Screen {
 public:
  explicit Screen(int width) : width_(std::max(60, width)) {}

  void line(const std::string& text, int indent = 0) {
    for (const std::string& part : wrapText(printable(text, kLongestLine), width_ - indent))
      out_ += std::string(static_cast<size_t>(indent), ' ') + part + "\n";
  }
  void gap() { out_ += "\n"; }

  /// A heading and at most kMostLines items; lines of an item after its first stand further in.
  template <typename Items, typename F>
  void list(const std::string& heading, const Items& items, F text) {
    if (items.empty()) return;
    gap();
    line(fmt::format("{} ({})", heading, items.size()));
    for (size_t i = 0; i < std::min(items.size(), kMostLines); ++i) {
      const std::string all = text(items[i]);
      const std::vector<std::string> lines = split(all, '\n');
      for (size_t k = 0; k < lines.size(); ++k) line(lines[k], k == 0 ? 2 : 4);
    }
    if (items.size() > kMostLines)
      line(fmt::format("... and {} more in fleet.html", items.size() - kMostLines), 2);
  }
  [[nodiscard]] std::string text() && { return std::move(out_); }

 private:
  int width_;
  std::string out_;
};

/// "device n2 gpu5 (serial 13)", "rail n2 rail 3"; of a part that several nodes share only the part.
std::string whoText(const Incident& incident) {
  std::vector<std::string> parts;
  const bool ofNode = incident.kind == "device" || (incident.kind == "rail" && incident.nodeCount == 1);
  if (ofNode || !incident.part.starts_with(incident.kind + " ")) parts.push_back(incident.kind);  // "rail 3"
  if (incident.part.empty() || ofNode)
    parts.insert(parts.end(), incident.nodes.begin(), incident.nodes.end());
  if (incident.nodeCount > incident.nodes.size() && incident.part.empty())
    parts.push_back(fmt::format("and {} more", incident.nodeCount - incident.nodes.size()));
  if (!incident.part.empty()) parts.push_back(incident.part);
  return printable(join(parts, " "), 300) +
         (incident.serial.empty() ? "" : " (serial " + printable(incident.serial, 60) + ")");
}

std::string incidentText(const Incident& incident) {
  const std::string cause = printable(incident.cause, 600);
  const char* next = cause.ends_with('.') ? " Next: " : ". Next: ";
  std::string text = fmt::format("{} {}: {}{}", incident.urgencyName(), whoText(incident), cause,
                                 incident.action.empty() ? "" : next + printable(incident.action, 600));
  const size_t shown = std::min(incident.beneath.size(), kMostBeneath);
  for (size_t i = 0; i < shown; ++i) text += "\n" + printable(incident.beneath[i], 200);
  const size_t left = incident.beneathLeft + incident.beneath.size() - shown;
  if (left > 0) text += fmt::format("\nand {} more in fleet.json", left);
  return text;
}

std::string waiverText(const FleetWaiver& entry) {
  const Waiver& waiver = entry.waiver;
  return fmt::format("{}: {}: {} ({}, approved by {}, until {}; {})", nameOf(entry.state), waiver.text(),
                     entry.detail, waiver.reason, waiver.approver, waiver.expires, waiver.at);
}

std::string coverageText(const Fleet& fleet) {
  std::vector<std::string> parts;
  for (int i = kNodeStateCount - 1; i >= 0; --i)
    if (fleet.states[i] > 0)
      parts.push_back(fmt::format("{} {}", fleet.states[i], nameOf(static_cast<NodeState>(i))));
  return fmt::format("{} nodes expected by {}: {}", fleet.nodes.size(), printable(fleet.expectedFrom, 60),
                     join(parts, ", "));
}

}  // namespace

std::string renderFleetSummary(const Fleet& fleet, int width) {
  Screen screen(width);
  screen.line(fmt::format("{}{}  fleet of {} nodes, plan {}", fleet.simulated ? "SIMULATED " : "",
                          verdictText(fleet), fleet.nodes.size(), printable(fleet.planName, 60)));
  for (const std::string& reason : fleet.reasons) screen.line(reason, 2);
  screen.line(coverageText(fleet), 2);
  std::vector<const FleetNode*> open;
  for (const FleetNode& node : fleet.nodes)
    if (node.state != NodeState::kAccepted) open.push_back(&node);
  std::stable_sort(open.begin(), open.end(),
                   [](const auto* a, const auto* b) { return a->state < b->state; });
  screen.list("Not accepted", open, [](const FleetNode* node) {
    return fmt::format("{} {}: {}", nameOf(node->state), node->name, printable(node->reason, 300));
  });
  screen.list("Findings, most serious first", fleet.incidents, incidentText);
  screen.list("Waivers", fleet.waivers, waiverText);
  screen.list("Configuration drift", fleet.drift, [](const FactDrift& d) { return d.text; });
  const auto out = [](const LeftOut& o) {
    return fmt::format("{} ({}): {}", printable(o.node), printable(o.path), o.reason);
  };
  screen.list("Without a record", fleet.withoutRecord, out);
  screen.list("Duplicates", fleet.duplicates, out);
  screen.list("Stale (another plan or run)", fleet.stale, out);
  screen.list("Unexpected nodes", fleet.foreign, out);
  screen.list("Quarantined", fleet.quarantined,
              [](const Quarantined& q) { return fmt::format("{}: {}", printable(q.path), q.reason); });
  screen.list("Notes", fleet.notes, [](const std::string& note) { return note; });
  screen.gap();
  return std::move(screen).text();
}

}  // namespace muster::fleet
