// SPDX-License-Identifier: Apache-2.0
// Fills the templates of fleet.html.
#include "reports/fleet/render/fleet_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "reports/fleet/render/node_map.h"
#include "reports/html/csp.h"
#include "reports/html/view.h"
#include "runner/core/build_info.h"
#include "runner/core/clock.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/record/markup.h"
#include "runner/system/files.h"

namespace muster::fleet {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxTemplateBytes = 4ull << 20;
constexpr size_t kMostRows = 200;
constexpr size_t kMostDistributions = 120;

struct Template {
  std::string page;
  std::string style;
  std::string script;
};

Result<Template> loadTemplate(const fs::path& folder) {
  Template parts;
  MUSTER_TRY(parts.page, readFile(folder / "fleet" / "fleet.mustache", kMaxTemplateBytes));
  const auto both = [&](const fs::path& common, const fs::path& own) -> Result<std::string> {
    MUSTER_TRY(const std::string first, readFile(folder / common, kMaxTemplateBytes));
    MUSTER_TRY(const std::string second, readFile(folder / own, kMaxTemplateBytes));
    return first + second;
  };
  MUSTER_TRY(parts.style, both("report/report.css", "fleet/fleet.css"));
  MUSTER_TRY(parts.script, both("common/page.js", "fleet/fleet.js"));
  for (const auto* inlined : {&parts.style, &parts.script})
    if (inlined->find("</") != std::string::npos || inlined->find('\r') != std::string::npos)
      return Error{ErrorCode::kUnsupported,
                   "styles and scripts must hold neither \"</\" nor carriage returns",
                   (folder / "fleet").string()};
  return parts;
}

/// The first kMostRows of a list as views; `<name>_left` says how many were left out.
template <typename Items, typename F>
void addBounded(View& page, const std::string& name, const Items& items, F make, size_t most = kMostRows) {
  std::vector<View> views;
  for (size_t i = 0; i < std::min(items.size(), most); ++i) views.push_back(make(items[i]));
  page.list(name, std::move(views));
  page.text(name + "_count", std::to_string(items.size()));
  page.text(name + "_left", items.size() > most ? std::to_string(items.size() - most) : "");
}

std::vector<View> linesOf(const std::vector<std::string>& lines) {
  return viewsOf(lines, [](const std::string& line) {
    View view;
    view.text("line", line);
    return view;
  });
}

const char* meaningOf(Acceptance acceptance) {
  if (acceptance == Acceptance::kAccepted)
    return "All expected nodes were tested with this plan and accepted.";
  if (acceptance == Acceptance::kRejected) return "At least one requirement was not met.";
  return "No node was rejected, but some expected nodes have no complete result.";
}

/// "2 × b200 + 70 × h100-sxm5-80gb": the nodes of each SKU.
std::string skusText(const Fleet& fleet) {
  std::map<std::string, size_t> counts;
  for (const FleetNode& node : fleet.nodes)
    if (!node.records.empty()) ++counts[node.sku.empty() ? "unknown SKU" : node.sku];
  std::vector<std::string> parts;
  parts.reserve(counts.size());
  for (const auto& [sku, count] : counts) parts.push_back(fmt::format("{} × {}", count, sku));
  return join(parts, " + ");
}

/// What was measured and when, on the first page.
void addFacts(View& page, const Fleet& fleet) {
  size_t devices = 0;
  for (const FleetNode& node : fleet.nodes) devices += node.devices;
  const bool measured = fleet.started > 0;
  const std::vector<std::pair<const char*, std::string>> facts = {
      {"Devices measured", std::to_string(devices)},
      {"Nodes per SKU", skusText(fleet)},
      {"Plan", fleet.planName},
      {"Overrides", join(fleet.overrides, ", ")},
      {"First run started", measured ? formatUtc(fleet.started) : ""},
      {"Last run ended", measured ? formatUtc(fleet.finished) : ""},
      {"Fleet run", fleet.fleetId},
      {"Shared machines", fleet.sameMachine ? "allowed by --same-machine" : ""},
      {"Re-evaluated records",
       fleet.allowRejudged ? fmt::format("{}, allowed by --allow-rejudged", fleet.rejudged) : ""},
      {"Tool", "Muster " + std::string(toolVersion())}};
  std::vector<View> views;
  for (const auto& [name, value] : facts) {
    if (value.empty()) continue;
    View view;
    view.text("name", name).text("value", value);
    views.push_back(std::move(view));
  }
  page.list("facts", std::move(views));
}

/// One line for each of the first flagged components, beside the verdict; the full list is below.
void addHeadlines(View& page, const Fleet& fleet) {
  constexpr size_t kMost = 5;
  std::vector<std::string> lines;
  for (const Suspect& s : fleet.suspects) {
    if (lines.size() == kMost) break;
    lines.push_back(s.evidence.empty() ? s.name() : s.name() + ": " + printable(s.evidence.front(), 200));
  }
  const size_t left = fleet.suspects.size() + fleet.suspectsLeft - lines.size();
  page.list("headlines", linesOf(lines)).text("headlines_left", left > 0 ? std::to_string(left) : "");
}

void addHead(View& page, const Fleet& fleet, const std::string& recordSha256) {
  page.text("acceptance", nameOf(fleet.acceptance)).text("verdict", upperCase(nameOf(fleet.acceptance)));
  page.text("verdict_meaning", meaningOf(fleet.acceptance)).text("exit_code", std::to_string(fleet.exitCode));
  page.text("verdict_symbol", fleet.exitCode == 0 ? "✓" : fleet.exitCode == 1 ? "✕" : "!");
  page.flag("simulated", fleet.simulated).text("version", toolVersion()).text("build_id", buildId());
  page.text("fleet_id", fleet.fleetId);
  page.text("plan_name", fleet.planName).text("plan_sha256", fleet.planSha256);
  page.text("overrides", join(fleet.overrides, " ")).text("expected_from", fleet.expectedFrom);
  page.text("topology_from", fleet.topologyFrom).text("record_sha256", recordSha256);
  page.text("records_sha256", fleet.recordsSha256).text("node_count", std::to_string(fleet.nodes.size()));
  page.text("started", fleet.started > 0 ? formatUtc(fleet.started) : "");
  page.text("finished", fleet.finished > 0 ? formatUtc(fleet.finished) : "");
  page.list("reasons", linesOf(fleet.reasons)).list("notes", linesOf(fleet.notes));
  std::vector<View> states;
  for (int i = kNodeStateCount - 1; i >= 0; --i) {
    View view;
    view.text("state", nameOf(static_cast<NodeState>(i))).text("count", std::to_string(fleet.states[i]));
    view.flag("none", fleet.states[i] == 0);
    states.push_back(std::move(view));
  }
  page.list("states", std::move(states));
  std::vector<std::string> sum;
  for (int i = 0; i < kOutcomeCount; ++i)
    if (fleet.accounting.counts[i] > 0)
      sum.push_back(fmt::format("{} {}", fleet.accounting.counts[i], outcomeName(static_cast<Outcome>(i))));
  page.text("accounting", fmt::format("{} checks: {}", fleet.accounting.expected, join(sum, ", ")));
}

/// Names for the script's hover, one per line: "node7 rejected: reason".
std::string hoverLines(const Fleet& fleet) {
  std::string lines;
  for (const FleetNode& node : fleet.nodes) {
    lines += node.name + " " + nameOf(node.state);
    if (!std::isnan(node.worstShare))
      lines += fmt::format(", {:.1f}% {}", 100 * node.worstShare, node.worstFigure);
    if (!node.reason.empty()) lines += ": " + printable(node.reason, 80);
    lines += "\n";
  }
  return lines;
}

View nodeView(const FleetNode& node, const FleetRecords& records) {
  View view;
  view.text("node", node.name).text("state", nameOf(node.state)).text("reason", node.reason);
  view.text("sku", node.sku).text("devices", node.devices > 0 ? std::to_string(node.devices) : "");
  std::vector<std::string> paths;
  for (const size_t i : node.records) paths.push_back(records.nodes[i].path);
  view.text("records", join(paths, ", "));
  std::vector<std::string> counts;
  for (const Outcome outcome : {Outcome::kFail, Outcome::kError, Outcome::kFlaky, Outcome::kWarn,
                                Outcome::kSkipped, Outcome::kWaived})
    if (node.accounting.of(outcome) > 0)
      counts.push_back(fmt::format("{} {}", node.accounting.of(outcome), outcomeName(outcome)));
  view.text("counts", join(counts, ", "));
  return view;
}

void addNodes(View& page, const Fleet& fleet, const FleetRecords& records) {
  std::vector<const FleetNode*> open;
  for (const FleetNode& node : fleet.nodes)
    if (node.state != NodeState::kAccepted) open.push_back(&node);
  std::stable_sort(open.begin(), open.end(),
                   [](const auto* a, const auto* b) { return a->state < b->state; });
  addBounded(page, "open", open, [&](const FleetNode* node) { return nodeView(*node, records); });
  page.markup("state_map", stateMap(fleet)).markup("figure_map", figureMap(fleet));
  page.text("hover", hoverLines(fleet))
      .text("map_columns", std::to_string(kMapColumns))
      .text("map_cell", std::to_string(kMapCell));
}

View suspectView(const Suspect& s) {
  View view;
  view.text("kind", suspectKindName(s.kind))
      .text("node", s.node)
      .text("what", s.what)
      .text("serial", s.serial);
  view.text("by", s.byBoth    ? "limits and peers"
                  : s.byPeers ? "peers"
                              : "limits")
      .text("next", s.next)
      .list("evidence", linesOf(s.evidence))
      .list("beneath", linesOf(s.beneath))
      .text("beneath_left", s.beneathLeft > 0 ? std::to_string(s.beneathLeft) : "");
  view.text("class", findingClassName(s.grade));
  return view;
}

View driftView(const FactDrift& d) {
  View view;
  view.text("fact", d.fact).text("sku", d.sku).text("text", d.text);
  view.text("majority", d.majority)
      .text("agree", fmt::format("{} of {} {}", d.agree, d.total, d.ofDevices ? "devices" : "nodes"));
  view.list("odd", viewsOf(d.odd, [](const FactDrift::Odd& odd) {
              View one;
              one.text("value", odd.value)
                  .text("count", std::to_string(odd.count))
                  .text("where", join(odd.where, ", "));
              one.text("left",
                       odd.count > odd.where.size() ? std::to_string(odd.count - odd.where.size()) : "");
              return one;
            }));
  return view;
}

View leftOutView(const LeftOut& out) {
  View view;
  view.text("node", out.node)
      .text("path", out.path)
      .text("acceptance", out.acceptance)
      .text("reason", out.reason);
  return view;
}

View waiverView(const FleetWaiver& entry) {
  const Waiver& waiver = entry.waiver;
  View view;
  view.text("state", nameOf(entry.state)).text("what", waiver.text()).text("detail", entry.detail);
  view.text("reason", waiver.reason).text("approver", waiver.approver).text("expires", waiver.expires);
  view.text("at", waiver.at).text("by", entry.given ? "fleet" : "nodes");
  view.flag("unmatched", entry.state == WaiverState::kUnmatched);
  return view;
}

View distributionView(const Distribution& d) {
  const auto text = [&](double value) { return formatQuantity(value, d.unit); };
  View view;
  view.text("name", d.name).text("sku", d.sku).text("n", std::to_string(d.n)).text("median", text(d.median));
  view.text("low", text(d.low)).text("high", text(d.high)).text("p05", text(d.q05)).text("p95", text(d.q95));
  view.text("spread", d.median > 0 ? fmt::format("{:.2f}%", 100 * d.spread / d.median) : text(d.spread));
  view.markup("plot", histogram(d.bins));
  return view;
}

void addGroups(View& page, const Fleet& fleet, const FleetRecords& records) {
  addBounded(page, "groups", fleet.groups, [](const GroupStage& group) {
    View view;
    view.text("stage", group.stage)
        .text("outcome", outcomeName(group.outcome))
        .text("culprit", group.culprit);
    view.text("nodes", std::to_string(group.nodes))
        .text("ranks", std::to_string(group.ranks))
        .text("records", std::to_string(group.records));
    return view;
  });
  page.text("deferred_judged", fleet.deferredCount > 0 ? std::to_string(fleet.deferredCount) : "");
  addBounded(page, "deferred", fleet.deferred, [&](const DeferredMiss& miss) {
    const DeferredKey& key = records.names->deferred[miss.key];
    View view;
    view.text("outcome", outcomeName(miss.outcome)).text("node", miss.node).text("device", miss.device);
    view.text("stage", key.stage)
        .text("metric", key.metric)
        .text("detail", miss.detail)
        .text("remedy", key.expectation.remedy);
    return view;
  });
}

/// Nothing where the fleet was measured as a whole.
void addDelta(View& page, const Fleet& fleet) {
  page.flag("delta", fleet.delta.has_value());
  if (!fleet.delta) return;
  const FleetDelta& delta = *fleet.delta;
  page.text("since", delta.since).text("since_sha256", delta.sinceSha256);
  page.text("since_finished", formatUtc(delta.sinceFinished)).text("kept", std::to_string(delta.kept));
  addBounded(page, "taken", delta.nodes, [](const FleetDelta::Node& node) {
    View view;
    view.text("node", node.node).list("changes", linesOf(node.changes));
    view.list("runs", viewsOf(node.runs, [](const FleetDelta::Run& run) {
                View one;
                one.text("path", run.path).text("id", run.id).text("started", formatUtc(run.started));
                return one;
              }));
    return view;
  });
}

}  // namespace

Result<std::string> renderFleetHtml(const Fleet& fleet, const FleetRecords& records,
                                    const std::string& recordSha256, const fs::path& templates) {
  auto parts = loadTemplate(templates);
  if (!parts.ok()) return std::move(parts).error().context("loading the fleet report's template");
  kainjow::mustache::mustache page(parts->page);
  if (!page.is_valid())
    return Error{ErrorCode::kUnsupported, "the fleet report's template is damaged: " + page.error_message(),
                 (templates / "fleet" / "fleet.mustache").string()};
  page.set_custom_escape([](const std::string& text) { return escapeMarkup(text); });
  View view;
  view.markup("style", parts->style).markup("script", parts->script);
  view.markup("csp", contentSecurityPolicy(parts->style, parts->script));
  addHead(view, fleet, recordSha256);
  addFacts(view, fleet);
  addHeadlines(view, fleet);
  addNodes(view, fleet, records);
  addBounded(view, "findings", fleet.findings, [](const RecordFinding& finding) {
    View one;
    one.text("kind", findingKindName(finding.kind)).text("nodes", join(finding.nodes, ", "));
    return std::move(one.text("text", finding.text).text("next", finding.next));
  });
  addBounded(view, "suspects", fleet.suspects, suspectView);
  addBounded(view, "waivers", fleet.waivers, waiverView);
  view.text("waivers_from", fleet.waiversFrom).text("waivers_sha256", fleet.waiversSha256);
  addBounded(view, "drift", fleet.drift, driftView);
  addBounded(view, "duplicates", fleet.duplicates, leftOutView);
  addBounded(view, "stale", fleet.stale, leftOutView);
  addBounded(view, "without_record", fleet.withoutRecord, leftOutView);
  addBounded(view, "foreign", fleet.foreign, leftOutView);
  addBounded(view, "quarantined", fleet.quarantined, [](const Quarantined& q) {
    View one;
    one.text("path", q.path).text("node", q.node).text("reason", q.reason);
    return one;
  });
  addGroups(view, fleet, records);
  addDelta(view, fleet);
  addBounded(view, "distributions", fleet.distributions, distributionView, kMostDistributions);
  std::string html = page.render(view.data());
  if (!page.is_valid())
    return Error{ErrorCode::kInternal, "rendering the fleet report: " + page.error_message(),
                 templates.string()};
  return html;
}

}  // namespace muster::fleet
