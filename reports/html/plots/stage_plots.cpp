// SPDX-License-Identifier: Apache-2.0
// Chooses and draws the plots of a stage.
#include "reports/html/plots/stage_plots.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "reports/html/plots/plots.h"
#include "runner/record/findings/deviations.h"

namespace muster {
namespace {

constexpr size_t kMaxPlots = 24;
constexpr size_t kMostDevices = 1'000;  ///< of a plot: each finding has one

/// Texts, states and stability are no figures to draw.
bool isDrawable(const TableRow& row) {
  if (row.metric.empty() || !row.stability.empty() || row.cells.size() > kMostDevices) return false;
  const bool isState = std::any_of(row.wanted.begin(), row.wanted.end(), [](const Wanted& wanted) {
    return wanted.expectation->unit == "bool" || wanted.expectation->unit == "text";
  });
  if (isState) return false;
  // Counters that are zero everywhere say nothing as bars.
  return std::any_of(row.cells.begin(), row.cells.end(), [](const auto& cell) {
    return std::isfinite(cell.second.front()->observed) && cell.second.front()->observed != 0;
  });
}

/// A single bar that passed says no more than the table.
bool isWorthAPlot(const TableRow& row) {
  return isDrawable(row) && (row.cells.size() > 1 || row.worst <= Outcome::kWarn);
}

/// The verdict whose limit is drawn: the missed one, else the nearest.
const Verdict* limitOf(const TableRow& row) {
  const Verdict* found = nullptr;
  const auto rank = [](const Verdict& v) { return std::isfinite(v.margin) ? v.margin : 1e9; };
  for (const auto& [column, cell] : row.cells)
    for (const Verdict* verdict : cell)
      if (std::isfinite(verdict->limit) && (found == nullptr || rank(*verdict) < rank(*found)))
        found = verdict;
  return found;
}

std::string titleOf(const TableRow& row, const std::string& labels) {
  const std::string name = row.metric.substr(row.metric.find('.') + 1);
  return labels.empty() ? name : name + ", " + labels;
}

/// "at least 655 TFLOP/s" without the reason in brackets, which the table tells.
std::string shortLimit(const std::string& text) {
  return text.substr(0, text.find(" ("));
}

BarPlot barsOf(const TableRow& row, const std::vector<std::string>& columns, const Verdict* limit) {
  BarPlot plot;
  plot.title = titleOf(row, row.caseText);
  for (const auto& column : columns) {
    const auto cell = row.cells.find(column);
    if (cell == row.cells.end()) continue;
    const Verdict& worst = *cell->second.front();
    plot.bars.push_back({column, worst.observed, worst.observedText, worst.outcome});
  }
  if (limit != nullptr && std::isfinite(limit->limit)) {
    plot.limit = limit->limit;
    plot.limitText = shortLimit(limit->limitText);
  }
  return plot;
}

/// Other views of the same times would only repeat the curve.
bool repeatsAnother(const std::string& metric) {
  return metric.ends_with(".algorithm_bandwidth") || metric.ends_with(".collective_time");
}

}  // namespace

double sweptSize(const Measurement& m) {
  const auto label = m.labels.find("bytes");
  if (label == m.labels.end() || (m.unit != "B/s" && m.unit != "s") || repeatsAnother(m.metric)) return 0;
  return std::strtod(label->second.c_str(), nullptr);
}

std::set<std::string> sweptMetrics(const StageRecord& stage) {
  std::map<std::string, std::set<double>> sizes;
  for (const Measurement& m : stage.measurements)
    if (const double size = sweptSize(m); size > 0) sizes[m.metric].insert(size);
  std::set<std::string> swept;
  for (const auto& [metric, found] : sizes)
    if (found.size() >= kSweepSizes) swept.insert(metric);
  return swept;
}

std::vector<std::string> stagePlots(const StageRecord& stage, const StageTable& table, size_t& dropped) {
  const auto swept = sweptMetrics(stage);
  std::vector<const TableRow*> rows;
  for (const auto& row : table.rows)
    if (isWorthAPlot(row) && swept.count(row.metric) == 0) rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto* a, const auto* b) { return a->worst < b->worst; });
  dropped = rows.size() > kMaxPlots ? rows.size() - kMaxPlots : 0;
  rows.resize(rows.size() - dropped);
  std::vector<std::string> plots;
  plots.reserve(rows.size());
  for (const auto* row : rows) plots.push_back(barPlotSvg(barsOf(*row, table.columns, limitOf(*row))));
  return plots;
}

std::string plotAround(const StageTable& table, const Verdict& verdict) {
  // The limit of a spread has no place among the figures themselves.
  if (verdict.expectation && verdict.expectation->comparesStability()) return "";
  const std::string where = caseText(verdict);
  for (const auto& row : table.rows)
    if (row.metric == verdict.metric && row.caseText == where && isDrawable(row))
      return barPlotSvg(barsOf(row, table.columns, &verdict));
  return "";
}

}  // namespace muster
