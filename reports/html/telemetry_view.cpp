// SPDX-License-Identifier: Apache-2.0
// Telemetry of a stage: every series in a table, the varying ones as plots over time.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "reports/html/plots/plots.h"
#include "reports/html/plots/stage_table.h"
#include "reports/html/sections.h"
#include "runner/core/units.h"

namespace muster {
namespace {

std::string shortName(const std::string& metric) {
  return metric.substr(metric.find('.') + 1);
}

using SeriesList = std::vector<const TelemetrySeries*>;

std::map<std::string, SeriesList> byMetric(const StageRecord& stage) {
  std::map<std::string, SeriesList> groups;
  for (const auto& series : stage.telemetry) groups[series.metric].push_back(&series);
  for (auto& [metric, list] : groups)
    std::sort(list.begin(), list.end(),
              [](const auto* a, const auto* b) { return naturalLess(a->device, b->device); });
  return groups;
}

/// What failed here: the lines of these devices stand out, and these metrics come first.
struct Deviating {
  std::set<std::string> devices;
  std::set<std::string> metrics;
};

Deviating deviatingOf(const StageRecord& stage) {
  Deviating found;
  for (const auto& verdict : stage.verdicts) {
    if (verdict.outcome > Outcome::kFlaky) continue;
    found.devices.insert(verdict.device);
    found.metrics.insert(verdict.metric);
  }
  found.devices.erase("");
  return found;
}

const TelemetrySeries* extreme(const SeriesList& list, bool largest) {
  const TelemetrySeries* found = nullptr;
  for (const auto* series : list) {
    const double value = largest ? series->summary.max : series->summary.min;
    if (!std::isfinite(value)) continue;
    if (found == nullptr || (largest ? value > found->summary.max : value < found->summary.min))
      found = series;
  }
  return found;
}

std::string valueWithDevice(double value, const TelemetrySeries& series, bool several) {
  const std::string text = formatQuantity(value, series.unit, 3);
  return several && !series.device.empty() ? fmt::format("{} ({})", text, series.device) : text;
}

View rowOf(const std::string& metric, const SeriesList& list) {
  const bool several = list.size() > 1;
  const TelemetrySeries* low = extreme(list, false);
  const TelemetrySeries* high = extreme(list, true);
  const bool same = low != nullptr && high != nullptr && low->summary.min == high->summary.max;
  double mean = 0;
  size_t samples = 0;
  for (const auto* series : list) {
    mean += series->summary.mean / static_cast<double>(list.size());
    samples += series->summary.n;
  }
  View view;
  view.text("metric", shortName(metric)).text("devices", std::to_string(list.size()));
  const std::string unreadable = "unreadable";
  view.text("low", low == nullptr ? unreadable : valueWithDevice(low->summary.min, *low, several && !same));
  view.text("mean", formatQuantity(mean, list.front()->unit, 3));
  view.text("high",
            high == nullptr ? unreadable : valueWithDevice(high->summary.max, *high, several && !same));
  view.text("samples", std::to_string(samples));
  return view;
}

/// A change of less than 1% of the value is not worth a plot.
bool varies(const SeriesList& list) {
  return std::any_of(list.begin(), list.end(), [](const auto* series) {
    const double spread = series->summary.max - series->summary.min;
    return series->time.size() > 1 && spread > 0.01 * std::fabs(series->summary.max);
  });
}

using Bands = std::vector<std::pair<double, double>>;

/// Stretches in which a device of the stage was throttled, joined where a plot shows no gap: each plot has
/// them all. The power limit throttles
/// every device under full load and is left out.
Bands throttleBands(const StageRecord& stage) {
  Bands all;
  for (const TelemetrySeries& series : stage.telemetry) {
    const std::string name = shortName(series.metric);
    if (!name.starts_with("throttle_") || name == "throttle_power_cap" || series.unit != "s") continue;
    for (size_t i = 1; i < std::min(series.time.size(), series.value.size()); ++i)
      if (series.value[i] > series.value[i - 1]) all.emplace_back(series.time[i - 1], series.time[i]);
  }
  std::sort(all.begin(), all.end());
  constexpr double kPixels = 600;  // of a plot
  const double pixel = all.empty() ? 0 : (all.back().second - all.front().first) / kPixels;
  Bands bands;
  for (const auto& band : all) {
    if (bands.empty() || band.first > bands.back().second + pixel)
      bands.push_back(band);
    else
      bands.back().second = std::max(bands.back().second, band.second);
  }
  return bands;
}

LinePlot plotOf(const std::string& metric, const SeriesList& list, const std::set<std::string>& marked,
                const Bands& throttled) {
  LinePlot plot;
  plot.title = shortName(metric) + (throttled.empty() ? "" : " (shaded: throttled)");
  plot.bands = throttled;
  plot.unit = list.front()->unit;
  plot.xUnit = std::string("s");
  for (const auto* series : list) {
    Line& line = plot.lines.emplace_back();
    line.label = series->device.empty() ? std::string("node") : series->device;
    line.x = series->time;
    line.y = series->value;
    line.marked = marked.count(series->device) > 0;
  }
  return plot;
}

}  // namespace

std::string addTelemetry(View& view, const StageRecord& stage, size_t& pointsLeft) {
  const auto groups = byMetric(stage);
  const Deviating deviating = deviatingOf(stage);
  const Bands throttled = throttleBands(stage);
  std::vector<View> rows;
  std::vector<const std::pair<const std::string, SeriesList>*> varying;
  for (const auto& group : groups) {
    rows.push_back(rowOf(group.first, group.second));
    if (varies(group.second)) varying.push_back(&group);
  }
  std::stable_partition(varying.begin(), varying.end(),
                        [&](const auto* group) { return deviating.metrics.count(group->first) > 0; });
  std::vector<LinePlot> plots;
  for (size_t i = 0; i < std::min(varying.size(), kMostLinePlots); ++i)
    plots.push_back(plotOf(varying[i]->first, varying[i]->second, deviating.devices, throttled));
  std::vector<View> drawn = linePlotViews(plots, pointsLeft);
  const std::string left = drawn.size() == varying.size()
                               ? ""
                               : fmt::format(" · {} of {} telemetry plots drawn; record.json has all",
                                             drawn.size(), varying.size());
  view.list("telemetry", std::move(rows));
  view.list("telemetry_plots", std::move(drawn));
  return left;
}

}  // namespace muster
