// SPDX-License-Identifier: Apache-2.0
// Fills the templates of fleet.html.
#include "reports/fleet/render/fleet_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "reports/fleet/render/fleet_sections.h"
#include "reports/html/page/csp.h"
#include "reports/html/page/symbols.h"
#include "reports/html/page/view.h"
#include "reports/html/page_one/document_fields.h"
#include "runner/core/build_info.h"
#include "runner/core/clock.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/record/findings/deviations.h"
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

void addHead(View& page, const Fleet& fleet, const std::string& recordSha256) {
  page.text("acceptance", nameOf(fleet.acceptance)).text("exit_code", std::to_string(fleet.exitCode));
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
  for (int i = 0; i < kNodeStateCount; ++i) {
    if (fleet.states[i] == 0) continue;
    View view;
    view.text("state", nameOf(static_cast<NodeState>(i))).text("count", std::to_string(fleet.states[i]));
    states.push_back(std::move(view));
  }
  page.list("states", std::move(states));
  std::vector<std::string> sum;
  for (int i = 0; i < kOutcomeCount; ++i)
    if (fleet.accounting.counts[i] > 0)
      sum.push_back(fmt::format("{} {}", fleet.accounting.counts[i], outcomeName(static_cast<Outcome>(i))));
  page.text("accounting", fmt::format("{} checks: {}", fleet.accounting.expected, join(sum, ", ")));
}

/// "compute.gemm_throughput" of "gemm: compute.gemm_throughput (dtype=bf16)".
std::string shortName(const std::string& name) {
  const size_t colon = name.find(": ");
  const std::string metric = colon == std::string::npos ? name : name.substr(colon + 2);
  return metric.substr(0, metric.find(" ("));
}

/// Map, strip plots and the table of nodes.
void addNodes(View& page, const Fleet& fleet, const ReportLinks& links) {
  page.markup("map", rackMap(fleet)).markup("node_rows", nodeRows(fleet, links));
  page.markup("key_columns", keyColumns(fleet)).flag("topology", !fleet.topologyFrom.empty());
  std::string plots;
  for (size_t k = 0; k < kKeyFigureCount; ++k)
    plots += stripPlot(fleet, fleet.keyFigures[k],
                       fmt::format("{}: {}", kKeyFigureNames[k], shortName(fleet.keyFigures[k].name)));
  page.markup("strip_plots", plots);
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
  const auto base = [](double value) { return fmt::format("{:.6g}", value); };
  view.text("low_base", base(d.low)).text("p05_base", base(d.q05)).text("median_base", base(d.median));
  view.text("p95_base", base(d.q95)).text("high_base", base(d.high));
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

View clauseView(const FleetClause& clause) {
  const bool gap = !clause.without.empty();
  const size_t nodes = clause.nodes + clause.without.size();
  const Outcome outcome = gap || !clause.worst ? Outcome::kError : clause.worst->outcome;
  View view;
  view.text("id", clause.clause.id)
      .text("requirement", clause.clause.requirement)
      .text("source", clause.clause.source);
  view.text("outcome", outcomeName(outcome)).text("symbol", outcomeSymbol(outcome));
  view.text("result", gap ? "no evidence" : outcomeName(outcome));
  view.text("limit", clause.worst ? wantedText(*clause.worst) : "")
      .text("margin", clause.worst ? marginText(*clause.worst) : "");
  view.text("measured", clause.worst ? clause.worst->observedText : "");
  view.text("worst", clause.worst ? pairText(clause.worstNode, clause.worst->device) : "");
  view.text("evidence", fmt::format("{} of {} nodes, {} of {} check results met", clause.nodes, nodes,
                                    clause.met, clause.results));
  view.text("without", devicesText(clause.without));
  return view;
}

/// Nothing without requirements.
void addClauses(View& page, const PageExtras& extras) {
  const auto& requirements = extras.document.requirements;
  page.text("requirements_name", requirements ? requirements->name : "");
  page.text("requirements_sha256", requirements ? requirements->sha256 : "");
  page.text("clause_stages_without", join(extras.clauses.stagesWithout(), ", "));
  page.list("clauses", viewsOf(extras.clauses.clauses(), clauseView));
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
                                    const std::string& recordSha256, const fs::path& templates,
                                    const PageExtras& extras) {
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
  const ReportLinks links(records, extras.recordsAt);
  addFirstPage(view, fleet, extras.document);
  addIncidents(view, fleet, links, extras.document);
  addClauses(view, extras);
  addNodes(view, fleet, links);
  addBounded(view, "findings", fleet.findings, [](const RecordFinding& finding) {
    View one;
    one.text("kind", findingKindName(finding.kind)).text("nodes", join(finding.nodes, ", "));
    return std::move(one.text("text", finding.text).text("next", finding.next));
  });
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
