// SPDX-License-Identifier: Apache-2.0
// Chooses and draws the plots of a stage.
#include "reports/html/stage_plots.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "reports/html/plots.h"
#include "runner/record/deviations.h"

namespace muster {
namespace {

constexpr size_t kMaxPlots = 24;
constexpr size_t kSweepPoints = 4;  ///< sizes from which on a sweep is drawn as a curve

/// Texts, states and stability are no figures to draw.
bool isDrawable(const TableRow& row) {
  if (row.metric.empty() || !row.stability.empty()) return false;
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

double sizeOf(const TableRow& row) {
  const auto label = row.labels.find("bytes");
  return label == row.labels.end() ? 0 : std::strtod(label->second.c_str(), nullptr);
}

/// What rows of one sweep have in common: everything but the size.
std::string sweepKey(const TableRow& row) {
  Labels rest = row.labels;
  rest.erase("bytes");
  return row.metric + " " + labelsText(rest);
}

using Rows = std::vector<const TableRow*>;

Line sweepLine(const Rows& rows, const std::string& column) {
  Line line;
  line.label = column;
  for (const auto* row : rows) {
    const auto cell = row->cells.find(column);
    if (cell == row->cells.end()) continue;
    line.x.push_back(sizeOf(*row));
    line.y.push_back(cell->second.front()->observed);
    line.marked = line.marked || cell->second.front()->outcome <= Outcome::kFlaky;
  }
  return line;
}

LinePlot sweepOf(const Rows& rows, const std::vector<std::string>& columns) {
  Labels rest = rows.front()->labels;
  rest.erase("bytes");
  LinePlot plot;
  plot.title = titleOf(*rows.front(), labelsText(rest));
  plot.unit = rows.front()->wanted.empty() ? std::string() : rows.front()->wanted.front().expectation->unit;
  plot.xUnit = std::string("B");
  plot.logX = true;
  for (const auto& column : columns) {
    Line line = sweepLine(rows, column);
    if (!line.x.empty()) plot.lines.push_back(std::move(line));
  }
  return plot;
}

/// Rows that are points of a curve over message size; their rows go into `taken`.
std::vector<Rows> sweepsOf(const Rows& rows, std::set<const TableRow*>& taken) {
  std::map<std::string, Rows> byKey;
  for (const auto* row : rows)
    if (sizeOf(*row) > 0) byKey[sweepKey(*row)].push_back(row);
  std::vector<Rows> sweeps;
  for (auto& [key, sweep] : byKey) {
    if (sweep.size() < kSweepPoints) continue;
    std::sort(sweep.begin(), sweep.end(),
              [](const auto* a, const auto* b) { return sizeOf(*a) < sizeOf(*b); });
    taken.insert(sweep.begin(), sweep.end());
    sweeps.push_back(sweep);
  }
  return sweeps;
}

}  // namespace

std::vector<std::string> stagePlots(const StageTable& table, size_t& dropped) {
  Rows rows;
  for (const auto& row : table.rows)
    if (isWorthAPlot(row)) rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto* a, const auto* b) { return a->worst < b->worst; });
  std::set<const TableRow*> taken;
  std::vector<std::string> plots;
  for (const auto& sweep : sweepsOf(rows, taken)) plots.push_back(linePlotSvg(sweepOf(sweep, table.columns)));
  for (const auto* row : rows)
    if (taken.count(row) == 0) plots.push_back(barPlotSvg(barsOf(*row, table.columns, limitOf(*row))));
  dropped = plots.size() > kMaxPlots ? plots.size() - kMaxPlots : 0;
  plots.resize(plots.size() - dropped);
  return plots;
}

std::string plotAround(const StageTable& table, const Verdict& verdict) {
  // The limit of a spread has no place among the figures themselves.
  if (verdict.expectation && verdict.expectation->comparesStability()) return "";
  for (const auto& row : table.rows)
    if (row.metric == verdict.metric && row.caseText == caseText(verdict) && isDrawable(row))
      return barPlotSvg(barsOf(row, table.columns, &verdict));
  return "";
}

}  // namespace muster
