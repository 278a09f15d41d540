// SPDX-License-Identifier: Apache-2.0
// Curves of a stage: rates and latencies over message size, the loss over steps, each with its data as a
// table.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "reports/html/plots/axis.h"
#include "reports/html/plots/plots.h"
#include "reports/html/plots/stage_plots.h"
#include "reports/html/sections.h"
#include "runner/core/units.h"

namespace muster {
namespace {

constexpr size_t kLeastSteps = 8;  ///< of a curve over the samples of one measurement
constexpr size_t kMostRows = 16;   ///< of a data table; the record has all
constexpr size_t kLineCost = 50;   ///< of a line without points, in points

std::string shortMetric(const std::string& metric) {
  return metric.substr(metric.find('.') + 1);
}

/// Sizes of one line and what was reached there.
using SizeLine = std::map<double, double>;

/// What one plot holds: lines by device and placement.
struct SizePlot {
  const Measurement* first = nullptr;
  std::map<std::string, SizeLine> lines;
};

/// Measurements of a sweep by metric and labels. Unlike check results they exist for sizes without a limit
/// too.
std::map<std::string, SizePlot> sizePlots(const StageRecord& stage) {
  std::map<std::string, SizePlot> plots;
  for (const Measurement& m : stage.measurements) {
    if (sweptSize(m) <= 0) continue;
    Labels rest = m.labels;
    const std::string placement = rest.count("placement") > 0 ? rest["placement"] : "";
    for (const char* label : {"bytes", "device", "placement", "nodes", "ranks"}) rest.erase(label);
    std::string title = shortMetric(m.metric);
    if (!rest.empty()) title += ", " + labelsText(rest);
    SizePlot& plot = plots[title];
    plot.first = &m;
    const std::string device = m.device.empty() ? "all ranks" : m.device;
    plot.lines[placement.empty() ? device : placement].emplace(sweptSize(m), summarize(m.samples).median);
  }
  std::erase_if(plots, [](const auto& entry) {
    return std::none_of(entry.second.lines.begin(), entry.second.lines.end(),
                        [](const auto& line) { return line.second.size() >= kSweepSizes; });
  });
  return plots;
}

LinePlot sizeCurve(const std::string& title, const SizePlot& sizes, const std::set<std::string>& marked) {
  LinePlot plot;
  plot.title = title + " over message size";
  plot.unit = sizes.first->unit;
  plot.xUnit = std::string("B");
  plot.logX = plot.logY = true;
  for (const auto& [name, points] : sizes.lines) {
    Line line;
    line.label = name;
    line.marked = marked.count(name) > 0;
    for (const auto& [size, value] : points) line.x.push_back(size), line.y.push_back(value);
    plot.lines.push_back(std::move(line));
  }
  return plot;
}

/// Whether the samples of a measurement are the steps of a training.
bool isStepCurve(const Measurement& m) {
  return m.unit == "number" && m.samples.size() >= kLeastSteps;
}

std::vector<LinePlot> stepCurves(const StageRecord& stage) {
  std::map<std::string, LinePlot> plots;
  for (const Measurement& m : stage.measurements) {
    if (!isStepCurve(m)) continue;
    LinePlot& plot = plots[m.metric];
    plot.title = shortMetric(m.metric) + " over steps";
    plot.unit = m.unit;
    plot.xUnit = std::string("count");
    Line& line = plot.lines.emplace_back();
    line.label = m.device.empty() ? "all ranks" : m.device;
    for (size_t i = 0; i < m.samples.size(); ++i) line.x.push_back(static_cast<double>(i + 1));
    line.y = m.samples;
  }
  std::vector<LinePlot> found;
  for (auto& [metric, plot] : plots) found.push_back(std::move(plot));
  return found;
}

/// Every x of the plot, thinned evenly.
std::vector<double> tableSteps(const LinePlot& plot) {
  std::set<double> all;
  for (const Line& line : plot.lines)
    for (const double x : line.x)
      if (std::isfinite(x)) all.insert(x);
  const std::vector<double> sorted(all.begin(), all.end());
  if (sorted.size() <= kMostRows) return sorted;
  std::vector<double> thinned;
  for (size_t i = 0; i < kMostRows; ++i) thinned.push_back(sorted[i * (sorted.size() - 1) / (kMostRows - 1)]);
  return thinned;
}

View dataRow(const LinePlot& plot, double x, const DisplayUnit& unit) {
  View row;
  row.text("x", plot.xUnit == "B" ? formatQuantity(x, "B", 3) : plainNumber(x));
  row.list("data_cells", viewsOf(plot.lines, [&](const Line& line) {
             View cell;
             const auto at = std::find(line.x.begin(), line.x.end(), x);
             const size_t place = static_cast<size_t>(at - line.x.begin());
             cell.text("value", place < line.y.size() ? plainNumber(line.y[place] * unit.factor) : "");
             return cell;
           }));
  return row;
}

/// What a plot takes of the page, in points of about twelve bytes.
size_t pointsOf(const LinePlot& plot) {
  size_t points = 4 * plot.bands.size();  // longer elements
  for (const Line& line : plot.lines) points += line.x.size() + line.label.size() + kLineCost;
  return points;
}

View linePlotView(const LinePlot& plot) {
  double largest = 0;
  for (const Line& line : plot.lines)
    for (const double y : line.y)
      if (std::isfinite(y)) largest = std::max(largest, std::fabs(y));
  const DisplayUnit unit = displayUnit(largest, plot.unit);
  View view;
  view.markup("svg", linePlotSvg(plot)).text("data_unit", unit.suffix).text("plot_title", plot.title);
  view.text("x_name", plot.xUnit == "B" ? "size" : plot.xUnit == "s" ? "time, s" : "step");
  view.list("data_columns", viewsOf(plot.lines, [](const Line& line) {
              View column;
              column.text("name", line.label);
              return column;
            }));
  view.list("data_rows", viewsOf(tableSteps(plot), [&](double x) { return dataRow(plot, x, unit); }));
  return view;
}

}  // namespace

std::vector<View> linePlotViews(const std::vector<LinePlot>& plots, size_t& pointsLeft) {
  std::vector<View> views;
  for (const LinePlot& plot : plots) {
    const size_t points = pointsOf(plot);
    if (views.size() == kMostLinePlots || points > pointsLeft) continue;
    pointsLeft -= points;
    views.push_back(linePlotView(plot));
  }
  return views;
}

void addCurves(View& view, const StageRecord& stage, size_t& pointsLeft) {
  std::set<std::string> marked;
  for (const Verdict& verdict : stage.verdicts)
    if (verdict.outcome <= Outcome::kFlaky) marked.insert(verdict.device);
  std::vector<LinePlot> curves = stepCurves(stage);
  for (const auto& [title, sizes] : sizePlots(stage)) curves.push_back(sizeCurve(title, sizes, marked));
  std::vector<View> views = linePlotViews(curves, pointsLeft);
  const size_t dropped = curves.size() - views.size();
  view.list("curves", std::move(views));
  view.text("curves_dropped", dropped > 0 ? std::to_string(dropped) : "");
}

}  // namespace muster
