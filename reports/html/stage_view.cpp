// SPDX-License-Identifier: Apache-2.0
// Every stage: its overview line, table of verdicts, plots, telemetry and what else it left.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "reports/html/page/symbols.h"
#include "reports/html/plots/heat_map.h"
#include "reports/html/plots/stage_plots.h"
#include "reports/html/plots/stage_table.h"
#include "reports/html/sections.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/record/findings/deviations.h"

namespace muster {
namespace {

/// Of all tables of a page, blank ones too: rows of one device each must not multiply. The record has all.
constexpr size_t kMostTableCells = 200'000;
constexpr size_t kMostTableColumns = 1'000;
constexpr size_t kMostTableRows = 2'000;

/// What all stages share.
struct Shared {
  Sources& sources;
  StageSamples samples = {};
  size_t cellsLeft = kMostTableCells;
  size_t pointsLeft = kMostPlotPoints;
};

/// How far inside its nearest limit a met figure is: tables shade the near ones.
const char* nearness(const std::vector<const Verdict*>& cell) {
  double margin = std::numeric_limits<double>::infinity();
  for (const Verdict* verdict : cell) {
    if (verdict->outcome != Outcome::kPass) return "";
    if (verdict->expectation && verdict->expectation->unit == "count")
      continue;  // one device of one is not near
    if (std::isfinite(verdict->margin)) margin = std::min(margin, verdict->margin);
  }
  return margin < 0.02 ? "near" : margin < 0.10 ? "mid" : std::isfinite(margin) ? "far" : "";
}

/// One line for the device, one for each verdict.
std::string tipText(const StageRecord& stage, const std::string& column,
                    const std::vector<const Verdict*>& cell, Shared& shared) {
  const std::string samples = samplesText(shared.samples.of(stage, *cell.front()), unitOf(*cell.front()));
  std::vector<std::string> lines = {column + (samples.empty() ? "" : " (" + samples + ")")};
  for (const Verdict* verdict : cell) {
    std::vector<std::string> parts;
    for (const auto& part : {verdict->observedText, wantedText(*verdict), marginText(*verdict)})
      if (!part.empty()) parts.push_back(part);
    lines.push_back(fmt::format("{}: {}", outcomeName(verdict->outcome),
                                parts.empty() ? verdict->detail : join(parts, ", ")));
  }
  return join(lines, "\n");
}

View cellView(const StageRecord& stage, const TableRow& row, const std::string& column, Shared& shared) {
  View view;
  const auto found = row.cells.find(column);
  view.flag("empty", found == row.cells.end());
  if (found == row.cells.end()) {
    for (const char* name : {"outcome", "nearness", "value", "symbol", "tip", "sort"}) view.text(name, "");
    return view;
  }
  const Verdict& worst = *found->second.front();
  view.text("outcome", outcomeName(worst.outcome)).text("nearness", nearness(found->second));
  view.text("value", cellText(row, worst)).text("tip", tipText(stage, column, found->second, shared));
  view.text("symbol", worst.outcome == Outcome::kPass ? "" : outcomeSymbol(worst.outcome));
  view.text("sort", std::isfinite(worst.observed) ? fmt::format("{}", worst.observed) : "");
  return view;
}

View wantedView(const Wanted& wanted, Sources& sources) {
  View view;
  view.text("text", wanted.text).text("outcome", outcomeName(wanted.worst));
  view.text("symbol", wanted.worst == Outcome::kPass ? "" : outcomeSymbol(wanted.worst));
  const int cited = sources.number(wanted.expectation->source);
  view.text("cite", cited > 0 ? std::to_string(cited) : "");
  return view;
}

View rowView(const StageRecord& stage, const StageTable& table, const TableRow& row, Shared& shared) {
  View view;
  view.text("outcome", outcomeName(row.worst));
  const std::string name = row.metric.substr(row.metric.find('.') + 1);
  view.text("metric", row.metric.empty()      ? "(whole case)"
                      : row.stability.empty() ? name
                                              : row.stability + " of " + name);
  view.text("case", row.caseText).text("unit", row.unit);
  view.flag("unjudged", row.wanted.empty() && !row.metric.empty());
  view.list("wants",
            viewsOf(row.wanted, [&](const auto& wanted) { return wantedView(wanted, shared.sources); }));
  view.list("cells",
            viewsOf(table.columns, [&](const auto& column) { return cellView(stage, row, column, shared); }));
  return view;
}

/// One metric and case that nothing judges by intention, over the devices.
struct Reported {
  std::string metric;
  std::string caseText;
  std::string unit;
  std::vector<const Measurement*> measurements;
};

/// Metric, device and labels of what a verdict or measurement speaks of.
std::string subjectOf(const std::string& metric, const std::string& device, Labels labels) {
  labels.erase("device");
  return join({metric, device, labelsText(labels)}, "\n");
}

std::vector<Reported> reportedOf(const StageRecord& stage) {
  std::set<std::string> judged;
  for (const auto& v : stage.verdicts)
    if (v.expectation) judged.insert(subjectOf(v.metric, v.device, v.labels));
  std::vector<Reported> rows;
  std::map<std::pair<std::string, std::string>, size_t> places;
  for (const auto& m : stage.measurements) {
    if (!m.informational || judged.count(subjectOf(m.metric, m.device, m.labels)) > 0) continue;
    Labels labels = m.labels;
    labels.erase("device");
    const std::string text = labelsText(labels);
    const auto [place, isNew] = places.try_emplace({m.metric, text}, rows.size());
    if (isNew) rows.push_back({m.metric, text, m.unit, {}});
    rows[place->second].measurements.push_back(&m);
  }
  return rows;
}

/// One value for all, a range of many figures, or a list of what differs.
std::string reportedText(const Reported& row) {
  constexpr size_t kListed = 2;
  std::vector<std::string> texts;
  std::set<std::string> values;
  Summary range;
  std::vector<double> medians;
  for (const Measurement* m : row.measurements) {
    texts.push_back(fmt::format("{} {}", m->device.empty() ? "node" : m->device, m->valueText()));
    values.insert(m->valueText());
    medians.push_back(summarize(m->samples).median);
  }
  if (values.size() == 1) return *values.begin();
  range = summarize(medians);
  if (row.unit == "text" || row.unit == "bool" || texts.size() <= kListed || !std::isfinite(range.median))
    return join(texts, " · ");
  return fmt::format("{} to {}", formatQuantity(range.min, row.unit), formatQuantity(range.max, row.unit));
}

View reportedView(const Reported& row) {
  std::set<std::string> devices;
  for (const Measurement* m : row.measurements)
    devices.insert(m->device.empty() ? std::string("node") : m->device);
  View view;
  view.text("metric", row.metric.substr(row.metric.find('.') + 1)).text("case", row.caseText);
  view.text("devices", devices.size() == 1 ? *devices.begin() : plural(devices.size(), "device"));
  view.text("value", reportedText(row));
  return view;
}

View troubleView(const RankRecord& rank) {
  View view;
  view.text("rank", std::to_string(rank.rank))
      .text("device", rank.device)
      .text("attempt", std::to_string(rank.attempt));
  view.text("state", nameOf(rank.state)).text("signal", rank.signal).text("error", rank.error);
  view.text("last_progress", rank.lastProgress).text("rerun", rank.rerun);
  return view;
}

std::vector<View> troubledRanks(const StageRecord& stage) {
  std::vector<View> views;
  for (const auto& rank : stage.ranks)
    if (rank.state != RankOutcome::kOk) views.push_back(troubleView(rank));
  return views;
}

std::string metaText(const StageRecord& stage) {
  std::vector<std::string> parts = {std::string("scope ") + nameOf(stage.scope),
                                    plural(stage.ranks.size(), "rank"), plural(stage.cases.size(), "case")};
  if (stage.repeat > 1) parts.push_back(fmt::format("{} repeats", stage.repeat));
  if (stage.attempts > 1) parts.push_back(fmt::format("{} attempts", stage.attempts));
  parts.push_back(fmt::format("{} (timeout {})", formatQuantity(stage.duration, "s", 3),
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

void addPlots(View& view, const StageRecord& stage, const StageTable& table) {
  size_t dropped = 0;
  view.list("plots", viewsOf(stagePlots(stage, table, dropped), [](const std::string& svg) {
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

/// Cuts a table to its worst columns and rows; returns what was cut.
std::string cutTable(StageTable& table, size_t& cellsLeft) {
  const size_t columns = table.columns.size(), rows = table.rows.size();
  if (columns > kMostTableColumns) {
    std::map<std::string, Outcome> worst;
    for (const TableRow& row : table.rows)
      for (const auto& [column, cell] : row.cells) {
        const Outcome outcome = cell.front()->outcome;
        const auto [at, isNew] = worst.try_emplace(column, outcome);
        at->second = std::min(at->second, outcome);
      }
    std::stable_sort(table.columns.begin(), table.columns.end(),
                     [&](const auto& a, const auto& b) { return worst[a] < worst[b]; });
    table.columns.resize(kMostTableColumns);
    std::sort(table.columns.begin(), table.columns.end(), naturalLess);
  }
  if (const size_t most = std::min(kMostTableRows, cellsLeft / std::max<size_t>(table.columns.size(), 1));
      rows > most) {
    std::stable_sort(table.rows.begin(), table.rows.end(),
                     [](const TableRow& a, const TableRow& b) { return a.worst < b.worst; });
    table.rows.resize(most);
  }
  cellsLeft -= table.rows.size() * table.columns.size();
  if (table.columns.size() == columns && table.rows.size() == rows) return "";
  return fmt::format(" · table cut to the worst {} of {} rows and {} of {} columns; record.json has all",
                     table.rows.size(), rows, table.columns.size(), columns);
}

View tableView(const StageRecord& stage, const StageTable& table, Shared& shared) {
  View view;
  view.flag("wide", table.columns.size() > 4);
  view.list("columns", viewsOf(table.columns, [](const auto& column) { return named("column", column); }));
  view.list("rows", viewsOf(table.rows, [&](const auto& row) { return rowView(stage, table, row, shared); }));
  return view;
}

/// Stages in which a finding is worst: open. Others that fail only repeat it, and are folded.
std::set<const StageRecord*> openStages(const Record& record) {
  std::set<const StageRecord*> stages;
  for (const Deviation& deviation : deviations(record)) stages.insert(deviation.worst().stage);
  return stages;
}

View stageView(const StageRecord& stage, size_t number, bool open, Shared& shared) {
  const StageTable table = stageTable(stage);
  View view;
  view.text("number", std::to_string(number)).text("name", stage.name);
  view.text("test", stage.plugin + "." + stage.test).text("plugin_version", stage.pluginVersion);
  view.text("outcome", outcomeName(stage.outcome)).text("symbol", outcomeSymbol(stage.outcome));
  view.text("state", stage.state == StageState::kRan ? "" : nameOf(stage.state)).text("reason", stage.reason);
  view.flag("open", open);
  std::string meta = metaText(stage);
  auto pieces = splitTables(table);
  for (StageTable& piece : pieces) meta += cutTable(piece, shared.cellsLeft);
  view.text("verdict_counts", countsText(stage));
  view.text("scope", nameOf(stage.scope)).text("ranks_count", std::to_string(stage.ranks.size()));
  view.text("duration", fmt::format("{:.1f}", stage.duration));
  view.list("tables", viewsOf(pieces, [&](const auto& piece) { return tableView(stage, piece, shared); }));
  addPlots(view, stage, table);
  addCurves(view, stage, shared.pointsLeft);
  addHeatMaps(view, stage);
  meta += addTelemetry(view, stage, shared.pointsLeft);
  view.text("meta", meta);
  view.list("reported", viewsOf(reportedOf(stage), reportedView)).list("troubles", troubledRanks(stage));
  view.list("log", viewsOf(stage.log, [](const auto& line) { return named("line", line); }));
  view.list("artifacts", viewsOf(stage.artifacts, artifactView));
  return view;
}

}  // namespace

void addStages(View& page, const Record& record, Sources& sources) {
  std::vector<View> views;
  Shared shared{sources};
  const auto open = openStages(record);
  for (size_t i = 0; i < record.stages.size(); ++i) {
    const StageRecord& stage = record.stages[i];
    views.push_back(stageView(stage, i + 1, open.count(&stage) > 0, shared));
  }
  page.text("stage_count", std::to_string(record.stages.size()));
  page.list("stages", std::move(views));
}

}  // namespace muster
