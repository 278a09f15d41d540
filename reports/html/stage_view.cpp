// SPDX-License-Identifier: Apache-2.0
// Every stage: its overview line, table of verdicts, plots, telemetry and what else it left.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/html/sections.h"
#include "reports/html/stage_plots.h"
#include "reports/html/stage_table.h"
#include "reports/html/symbols.h"
#include "reports/model/deviations.h"
#include "runner/core/text.h"
#include "runner/core/units.h"

namespace muster {
namespace {

/// How far inside its limit a met figure is: tables shade the near ones.
const char* nearness(const Verdict& verdict) {
  if (verdict.outcome != Outcome::kPass || !std::isfinite(verdict.margin)) return "";
  return verdict.margin < 0.02 ? "near" : verdict.margin < 0.10 ? "mid" : "far";
}

View cellView(const StageRecord& stage, const TableRow& row, const std::string& column) {
  View view;
  const auto found = row.cells.find(column);
  view.flag("empty", found == row.cells.end());
  if (found == row.cells.end()) {
    for (const char* name : {"outcome", "nearness", "value", "symbol", "tip", "sort"}) view.text(name, "");
    return view;
  }
  const Verdict& verdict = *found->second;
  std::vector<std::string> tip = {column + ": " + outcomeName(verdict.outcome)};
  for (const auto& part : {verdict.observedText, marginText(verdict.margin),
                           samplesText(samplesOf(stage, verdict)), verdict.detail})
    if (!part.empty()) tip.push_back(part);
  view.text("outcome", outcomeName(verdict.outcome)).text("nearness", nearness(verdict));
  view.text("value", cellText(row, verdict)).text("tip", join(tip, "; "));
  view.text("symbol", verdict.outcome == Outcome::kPass ? "" : outcomeSymbol(verdict.outcome));
  view.text("sort", std::isfinite(verdict.observed) ? fmt::format("{}", verdict.observed) : "");
  return view;
}

View rowView(const StageRecord& stage, const StageTable& table, const TableRow& row, Sources& sources) {
  View view;
  view.text("outcome", outcomeName(row.worst)).text("symbol", outcomeSymbol(row.worst));
  const std::string name = row.metric.substr(row.metric.find('.') + 1);
  view.text("metric", row.metric.empty() ? "(whole case)" : name)
      .text("case", row.caseText)
      .text("unit", row.unit);
  view.text("wanted", row.wanted).flag("unjudged", row.wanted.empty() && !row.metric.empty());
  const int cited = row.expectation != nullptr ? sources.number(row.expectation->source) : 0;
  view.text("cite", cited > 0 ? std::to_string(cited) : "");
  view.list("cells",
            viewsOf(table.columns, [&](const auto& column) { return cellView(stage, row, column); }));
  return view;
}

/// One metric and case that nothing judges by intention, over the devices.
struct Reported {
  std::string metric;
  std::string caseText;
  std::vector<std::pair<std::string, std::string>> values;  ///< device and value
};

std::vector<Reported> reportedOf(const StageRecord& stage) {
  std::vector<Reported> rows;
  for (const auto& m : stage.measurements) {
    if (!m.informational) continue;
    Labels labels = m.labels;
    labels.erase("device");
    const std::string text = labelsText(labels);
    auto found = std::find_if(rows.begin(), rows.end(), [&](const auto& row) {
      return row.metric == m.metric && row.caseText == text;
    });
    if (found == rows.end()) found = rows.insert(rows.end(), {m.metric, text, {}});
    found->values.emplace_back(m.device.empty() ? "node" : m.device, m.valueText());
  }
  return rows;
}

View reportedView(const Reported& row) {
  const bool same = std::all_of(row.values.begin(), row.values.end(),
                                [&](const auto& value) { return value.second == row.values.front().second; });
  std::vector<std::string> texts;
  std::vector<std::string> devices;
  for (const auto& [device, value] : row.values) {
    texts.push_back(fmt::format("{} {}", device, value));
    if (std::find(devices.begin(), devices.end(), device) == devices.end()) devices.push_back(device);
  }
  View view;
  view.text("metric", row.metric.substr(row.metric.find('.') + 1)).text("case", row.caseText);
  view.text("devices", devicesText(devices))
      .text("value", same ? row.values.front().second : join(texts, " · "));
  return view;
}

View troubleView(const RankRecord& rank) {
  View view;
  view.text("rank", std::to_string(rank.rank))
      .text("device", rank.device)
      .text("attempt", std::to_string(rank.attempt));
  view.text("state", rank.state).text("signal", rank.signal).text("error", rank.error);
  view.text("last_progress", rank.lastProgress).text("rerun", rank.rerun);
  return view;
}

std::vector<View> troubledRanks(const StageRecord& stage) {
  std::vector<View> views;
  for (const auto& rank : stage.ranks)
    if (rank.state != "ok") views.push_back(troubleView(rank));
  return views;
}

std::string metaText(const StageRecord& stage) {
  std::vector<std::string> parts = {"scope " + stage.scope, plural(stage.ranks.size(), "rank"),
                                    plural(stage.cases.size(), "case")};
  if (stage.repeat > 1) parts.push_back(fmt::format("{} repeats", stage.repeat));
  if (stage.attempts > 1) parts.push_back(fmt::format("{} attempts", stage.attempts));
  parts.push_back(fmt::format("{} of at most {}", formatQuantity(stage.duration, "s", 3),
                              formatQuantity(stage.timeout, "s", 3)));
  if (!stage.needs.empty()) parts.push_back("needs " + join(stage.needs, ", "));
  if (!stage.required) parts.push_back("optional");
  return join(parts, " · ");
}

std::string countsText(const StageRecord& stage) {
  Accounting accounting;
  for (const auto& verdict : stage.verdicts) accounting.add(verdict);
  std::vector<std::string> parts;
  for (int i = 0; i < kOutcomeCount; ++i)
    if (accounting.counts[i] > 0)
      parts.push_back(fmt::format("{} {}", accounting.counts[i], outcomeName(static_cast<Outcome>(i))));
  return parts.empty() ? "none" : join(parts, ", ");
}

View artifactView(const ArtifactRecord& artifact) {
  View view;
  view.text("name", artifact.name).text("path", artifact.path).text("sha256", artifact.sha256);
  view.text("size", formatQuantity(static_cast<double>(artifact.bytes), "B", 3));
  return view;
}

void addPlots(View& view, const StageTable& table) {
  size_t dropped = 0;
  view.list("plots", viewsOf(stagePlots(table, dropped), [](const std::string& svg) {
              View plot;
              plot.markup("svg", svg);
              return plot;
            }));
  view.text("plots_dropped", dropped > 0 ? std::to_string(dropped) : "");
}

View named(const std::string& name, const std::string& value) {
  View view;
  view.text(name, value);
  return view;
}

View stageView(const StageRecord& stage, size_t number, Sources& sources) {
  const StageTable table = stageTable(stage);
  View view;
  view.text("number", std::to_string(number)).text("name", stage.name);
  view.text("test", stage.plugin + "." + stage.test).text("plugin_version", stage.pluginVersion);
  view.text("outcome", outcomeName(stage.outcome)).text("symbol", outcomeSymbol(stage.outcome));
  view.text("state", stage.state == "ran" ? "" : stage.state).text("reason", stage.reason);
  view.text("meta", metaText(stage)).text("verdict_counts", countsText(stage));
  view.text("scope", stage.scope).text("ranks_count", std::to_string(stage.ranks.size()));
  view.text("duration", formatQuantity(stage.duration, "s", 3));
  view.flag("wide", table.columns.size() > 4);
  view.list("columns", viewsOf(table.columns, [](const auto& column) { return named("column", column); }));
  view.list("rows",
            viewsOf(table.rows, [&](const auto& row) { return rowView(stage, table, row, sources); }));
  addPlots(view, table);
  addTelemetry(view, stage);
  view.list("reported", viewsOf(reportedOf(stage), reportedView)).list("troubles", troubledRanks(stage));
  view.list("log", viewsOf(stage.log, [](const auto& line) { return named("line", line); }));
  view.list("artifacts", viewsOf(stage.artifacts, artifactView));
  return view;
}

}  // namespace

void addStages(View& page, const Record& record, Sources& sources) {
  std::vector<View> views;
  for (size_t i = 0; i < record.stages.size(); ++i)
    views.push_back(stageView(record.stages[i], i + 1, sources));
  page.text("stage_count", std::to_string(record.stages.size()));
  page.list("stages", std::move(views));
}

}  // namespace muster
