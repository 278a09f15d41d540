// SPDX-License-Identifier: Apache-2.0
// See stage_plots.h.
#include "reports/html/stage_plots.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "reports/html/plots.h"
#include "reports/model/deviations.h"

namespace muster {
namespace {

constexpr size_t kMaxPlots = 24;
constexpr size_t kSweepPoints = 4;  ///< a sweep of at least so many sizes is a curve

/// Rows of one metric and case: several expectations on the same figures make one plot.
struct PlotGroup {
  std::string metric;
  std::string caseText;
  Labels labels;
  std::vector<const TableRow*> rows;
  Outcome worst = Outcome::kPass;
};

/// Stability and predicates compare something else than the figure itself.
bool showsFigure(const TableRow& row) {
  if (row.metric.empty()) return false;
  if (row.expectation != nullptr &&
      (row.expectation->kind == CheckKind::kCvMax || row.expectation->kind == CheckKind::kPredicate ||
       row.expectation->unit == "bool" || row.expectation->unit == "text"))
    return false;
  return std::any_of(row.cells.begin(), row.cells.end(),
                     [](const auto& cell) { return std::isfinite(cell.second->observed); });
}

/// Counters that are zero everywhere say nothing as bars.
bool isFlatZero(const PlotGroup& group) {
  for (const auto* row : group.rows)
    for (const auto& [column, verdict] : row->cells)
      if (std::isfinite(verdict->observed) && verdict->observed != 0) return false;
  return true;
}

std::vector<PlotGroup> groupsOf(const StageTable& table) {
  std::vector<PlotGroup> groups;
  for (const auto& row : table.rows) {
    if (!showsFigure(row)) continue;
    auto found = std::find_if(groups.begin(), groups.end(), [&](const PlotGroup& group) {
      return group.metric == row.metric && group.caseText == row.caseText;
    });
    if (found == groups.end())
      found = groups.insert(groups.end(), {row.metric, row.caseText, row.labels, {}, Outcome::kPass});
    found->rows.push_back(&row);
    found->worst = std::min(found->worst, row.worst);
  }
  groups.erase(std::remove_if(groups.begin(), groups.end(), isFlatZero), groups.end());
  return groups;
}

/// The verdict whose limit is drawn: an absolute one before one that rests on peers.
const Verdict* limitOf(const PlotGroup& group) {
  const Verdict* found = nullptr;
  for (const auto* row : group.rows) {
    for (const auto& [column, verdict] : row->cells) {
      if (!std::isfinite(verdict->limit)) continue;
      const bool relative = row->expectation != nullptr && row->expectation->kind == CheckKind::kWithin;
      if (found == nullptr || !relative) found = verdict;
      if (!relative) return found;
    }
  }
  return found;
}

std::string titleOf(const PlotGroup& group) {
  const std::string name = group.metric.substr(group.metric.find('.') + 1);
  return group.caseText.empty() ? name : name + ", " + group.caseText;
}

BarPlot barsOf(const PlotGroup& group, const std::vector<std::string>& columns) {
  BarPlot plot;
  plot.title = titleOf(group);
  for (const auto& column : columns) {
    const Verdict* worst = nullptr;
    for (const auto* row : group.rows) {
      const auto cell = row->cells.find(column);
      if (cell != row->cells.end() && (worst == nullptr || cell->second->outcome < worst->outcome))
        worst = cell->second;
    }
    if (worst == nullptr) continue;
    plot.bars.push_back({column, worst->observed, worst->observedText, worst->outcome});
  }
  if (const Verdict* limit = limitOf(group)) {
    plot.limit = limit->limit;
    plot.limitText = limit->limitText;
  }
  return plot;
}

double sizeOf(const PlotGroup& group) {
  const auto label = group.labels.find("bytes");
  return label == group.labels.end() ? 0 : std::strtod(label->second.c_str(), nullptr);
}

/// What groups of one sweep have in common: everything but the size.
std::string sweepKey(const PlotGroup& group) {
  Labels rest = group.labels;
  rest.erase("bytes");
  return group.metric + " " + labelsText(rest);
}

LinePlot sweepOf(const std::vector<const PlotGroup*>& groups, const std::vector<std::string>& columns) {
  LinePlot plot;
  Labels rest = groups.front()->labels;
  rest.erase("bytes");
  plot.title = groups.front()->metric.substr(groups.front()->metric.find('.') + 1);
  if (!rest.empty()) plot.title += ", " + labelsText(rest);
  const TableRow& row = *groups.front()->rows.front();
  plot.unit = row.expectation != nullptr ? row.expectation->unit : "";
  plot.xUnit = std::string("B");
  plot.logX = true;
  for (const auto& column : columns) {
    Line line;
    line.label = column;
    for (const auto* group : groups) {
      const auto cell = group->rows.front()->cells.find(column);
      if (cell == group->rows.front()->cells.end()) continue;
      line.x.push_back(sizeOf(*group));
      line.y.push_back(cell->second->observed);
      line.marked = line.marked || cell->second->outcome <= Outcome::kWarn;
    }
    if (!line.x.empty()) plot.lines.push_back(std::move(line));
  }
  return plot;
}

/// Splits off the sweeps; what is left of `groups` is drawn as bars.
std::vector<std::vector<const PlotGroup*>> sweepsOf(const std::vector<PlotGroup>& groups,
                                                    std::set<const PlotGroup*>& taken) {
  std::map<std::string, std::vector<const PlotGroup*>> byKey;
  for (const auto& group : groups)
    if (sizeOf(group) > 0) byKey[sweepKey(group)].push_back(&group);
  std::vector<std::vector<const PlotGroup*>> sweeps;
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
  std::vector<PlotGroup> groups = groupsOf(table);
  std::stable_sort(groups.begin(), groups.end(),
                   [](const PlotGroup& a, const PlotGroup& b) { return a.worst < b.worst; });
  std::set<const PlotGroup*> taken;
  std::vector<std::string> plots;
  for (const auto& sweep : sweepsOf(groups, taken))
    plots.push_back(linePlotSvg(sweepOf(sweep, table.columns)));
  for (const auto& group : groups)
    if (taken.count(&group) == 0) plots.push_back(barPlotSvg(barsOf(group, table.columns)));
  dropped = plots.size() > kMaxPlots ? plots.size() - kMaxPlots : 0;
  plots.resize(plots.size() - dropped);
  return plots;
}

std::string plotAround(const StageTable& table, const Verdict& verdict) {
  for (const auto& group : groupsOf(table))
    if (group.metric == verdict.metric && group.caseText == caseText(verdict))
      return barPlotSvg(barsOf(group, table.columns));
  return "";
}

}  // namespace muster
