// SPDX-License-Identifier: Apache-2.0
// The first page: document line, verdict, one sentence, concessions, signatures.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "reports/fleet/render/fleet_sections.h"
#include "reports/html/page_one/document_fields.h"
#include "runner/core/clock.h"
#include "runner/core/text.h"
#include "runner/record/findings/deviations.h"

namespace muster::fleet {
namespace {

std::string skuText(const Fleet& fleet) {
  std::map<std::string, size_t> counts;
  for (const FleetNode& node : fleet.nodes)
    if (!node.records.empty()) ++counts[node.sku.empty() ? "unknown SKU" : node.sku];
  std::vector<std::string> parts;
  for (const auto& [sku, count] : counts)
    parts.push_back(counts.size() == 1 ? sku : fmt::format("{} × {}", count, sku));
  return join(parts, " + ");
}

struct Task {
  Repair repair;
  const char* verb;
  const char* noun;
  bool perNode;  ///< counts nodes, else incidents
};

constexpr Task kTasks[] = {{Repair::kGpu, "repair or replace", "GPU", false},
                           {Repair::kNode, "repair", "node", true},
                           {Repair::kLink, "repair", "link", false},
                           {Repair::kNetwork, "check", "switch, rack or rail", false},
                           {Repair::kFleet, "settle", "fleet-wide finding", false},
                           {Repair::kAbsentNode, "test", "missing node", true},
                           {Repair::kRetest, "retest", "node", true},
                           {Repair::kRecords, "correct", "record or waiver", false}};

std::string countedNoun(size_t count, const std::string& noun) {
  const size_t or_ = noun.rfind(" or ");
  if (count == 1 || or_ == std::string::npos) return plural(count, noun);
  return fmt::format("{} findings about a {}", count, noun);
}

View concessionView(const FleetWaiver& entry) {
  const Waiver& waiver = entry.waiver;
  const std::string device =
      waiver.device + (waiver.serial.empty() ? ""
                                             : (waiver.device.empty() ? "serial " : " (serial ") +
                                                   waiver.serial + (waiver.device.empty() ? "" : ")"));
  View view;
  view.text("text",
            fmt::format("{}, {}{}{}: approved by {}, until {}", pairText(join(entry.nodes, ", "), device),
                        waiver.stage, waiver.stage.empty() ? "" : " ", waiver.metric, waiver.approver,
                        waiver.expires));
  return view;
}

}  // namespace

std::string verdictText(const Fleet& fleet) {
  const bool waived = std::any_of(fleet.waivers.begin(), fleet.waivers.end(),
                                  [](const FleetWaiver& waiver) { return waiver.count.covered > 0; });
  if (fleet.acceptance == Acceptance::kAccepted && (waived || fleet.accounting.of(Outcome::kWaived) > 0))
    return "ACCEPTED WITH CONCESSIONS";
  return upperCase(nameOf(fleet.acceptance));
}

std::string summarySentence(const Fleet& fleet) {
  if (fleet.acceptance == Acceptance::kAccepted) {
    std::string text =
        fmt::format("All {} were tested with this plan and accepted", plural(fleet.nodes.size(), "node"));
    if (const size_t waived = fleet.accounting.of(Outcome::kWaived); waived > 0)
      text += fmt::format("; waivers cover {}", plural(waived, "failure"));
    return text + ".";
  }
  std::vector<std::string> parts;
  for (const Task& task : kTasks) {
    size_t count = 0;
    for (const Incident& incident : fleet.incidents)
      if (incident.blocks() && incident.repair == task.repair) count += task.perNode ? incident.nodeCount : 1;
    if (count > 0) parts.push_back(fmt::format("{} {}", task.verb, countedNoun(count, task.noun)));
  }
  if (parts.empty()) return join(fleet.reasons, "; ") + ".";
  std::string text = join(parts, ", ");
  if (const size_t comma = text.rfind(", "); parts.size() > 1) text.replace(comma, 2, " and ");
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return fmt::format("{}: then {} of {} can be accepted.", text, fleet.nodes.size(),
                     plural(fleet.nodes.size(), "node"));
}

namespace {

/// What the operator allowed or changed: it is part of the verdict.
std::string conditionsText(const Fleet& fleet) {
  std::vector<std::string> parts;
  if (!fleet.overrides.empty()) parts.push_back("plan changed by --set " + join(fleet.overrides, " "));
  if (fleet.sameMachine) parts.emplace_back("shared machines allowed by --same-machine");
  if (fleet.allowRejudged)
    parts.push_back(fmt::format("re-evaluated records: {}, allowed by --allow-rejudged", fleet.rejudged));
  if (fleet.rejectOutliers) parts.emplace_back("outliers rejected by --reject-outliers");
  return printable(join(parts, "; "), 600);
}

}  // namespace

void addFirstPage(View& page, const Fleet& fleet, const AcceptanceDocument& document) {
  page.list("document",
            {fieldView("Document", numberText(document)),
             fieldView("Contract, site", pairText(document.contract, document.site)),
             fieldView("Supplier", document.supplier), fieldView("Customer", document.customer),
             fieldView("Tested", windowText(fleet.started, fleet.finished)),
             fieldView("Plan, profile", pairText(fleet.planName, skuText(fleet))),
             fieldView("Expected nodes", fleet.expectedFrom), fieldView("Scope", document.scope)});
  addSigners(page, document);
  page.text("conditions", conditionsText(fleet));
  page.text("verdict", verdictText(fleet)).text("sentence", summarySentence(fleet));
  std::vector<std::string> counts;
  for (int i = kNodeStateCount - 1; i >= 0; --i)
    if (fleet.states[i] > 0)
      counts.push_back(fmt::format("{} {}", fleet.states[i], nameOf(static_cast<NodeState>(i))));
  const auto blocking = static_cast<size_t>(std::count_if(fleet.incidents.begin(), fleet.incidents.end(),
                                                          [](const Incident& one) { return one.blocks(); }));
  if (blocking > 0)
    counts.push_back(fmt::format(
        "{} acceptance", blocking == 1 ? "1 finding blocks" : fmt::format("{} findings block", blocking)));
  page.text("counts_line", join(counts, " · "));
  size_t devices = 0;
  for (const FleetNode& node : fleet.nodes) devices += node.devices;
  page.text("device_count", devices > 0 ? plural(devices, "device") : "");
  std::vector<View> concessions;
  for (const FleetWaiver& waiver : fleet.waivers)
    if (waiver.count.covered > 0 && concessions.size() < kMostNamed)
      concessions.push_back(concessionView(waiver));
  page.list("concessions", std::move(concessions));
}

}  // namespace muster::fleet
