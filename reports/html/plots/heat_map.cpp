// SPDX-License-Identifier: Apache-2.0
// Heat maps as tables: a cell says how much of the typical figure its pair reached.
#include "reports/html/plots/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "reports/html/plots/stage_table.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/record/findings/deviations.h"

namespace muster {
namespace {

constexpr size_t kMostMaps = 4;
constexpr size_t kMostNames = 64;
constexpr double kGood = 0.95;  ///< shares of the typical figure
constexpr double kFair = 0.85;

struct Entry {
  std::string a;
  std::string b;
  const Measurement* measurement;
};

double worstSample(const Measurement& m) {
  const auto [least, most] = std::minmax_element(m.samples.begin(), m.samples.end());
  return m.direction == Direction::kLower ? *most : *least;
}

HeatMap mapOf(const std::string& title, const std::vector<Entry>& entries) {
  HeatMap map;
  map.title = title;
  map.unit = entries.front().measurement->unit;
  map.higherIsBetter = entries.front().measurement->direction != Direction::kLower;
  std::set<std::string> names;
  for (const Entry& e : entries) names.insert({e.a, e.b});
  map.names.assign(names.begin(), names.end());
  if (map.names.size() > kMostNames) return map;  // it is not drawn
  std::stable_sort(map.names.begin(), map.names.end(), naturalLess);
  std::vector<double> all;
  for (const Entry& e : entries) {
    const auto place = [&](const std::string& name) {
      return static_cast<size_t>(std::find(map.names.begin(), map.names.end(), name) - map.names.begin());
    };
    const size_t a = place(e.a);
    const size_t b = place(e.b);
    const double value = worstSample(*e.measurement);
    const auto [it, fresh] = map.values.try_emplace({std::min(a, b), std::max(a, b)}, value);
    if (!fresh) it->second = map.higherIsBetter ? std::min(it->second, value) : std::max(it->second, value);
  }
  for (const auto& [key, value] : map.values) all.push_back(value);
  map.typical = summarize(all).median;
  return map;
}

/// A colour and, beside it, a sign: colour alone tells nobody anything.
const char* levelOf(double share) {
  return share >= kGood ? "good" : share >= kFair ? "fair" : "low";
}

View cellView(const HeatMap& map, size_t row, size_t column) {
  View view;
  const auto it = map.values.find({std::min(row, column), std::max(row, column)});
  const bool blank = row == column || it == map.values.end();
  view.flag("blank", blank);
  if (blank) return view;
  const double share = map.shareOf(it->second);
  view.text("level", levelOf(share)).text("share", fmt::format("{:.0f}", 100 * share));
  view.text("sign", share < kFair ? "!" : "");
  view.text("tip", fmt::format("{} - {}: {}", map.names[row], map.names[column],
                               formatQuantity(it->second, map.unit)));
  return view;
}

View rowView(const HeatMap& map, size_t row) {
  View view;
  view.text("number", std::to_string(row + 1)).text("name", map.names[row]);
  std::vector<View> cells;
  for (size_t column = 0; column < map.names.size(); ++column) cells.push_back(cellView(map, row, column));
  view.list("map_cells", std::move(cells));
  return view;
}

View mapView(const HeatMap& map) {
  View view;
  view.text("title", map.title).text("typical", formatQuantity(map.typical, map.unit));
  std::vector<View> columns;
  std::vector<View> rows;
  for (size_t i = 0; i < map.names.size(); ++i) {
    View column;
    column.text("number", std::to_string(i + 1)).text("name", map.names[i]);
    columns.push_back(std::move(column));
    rows.push_back(rowView(map, i));
  }
  view.list("map_columns", std::move(columns)).list("map_rows", std::move(rows));
  return view;
}

}  // namespace

double HeatMap::shareOf(double value) const {
  if (!(value > 0) || !(typical > 0)) return 0;
  return higherIsBetter ? value / typical : typical / value;
}

double HeatMap::worstShare() const {
  double worst = 1;
  for (const auto& [key, value] : values) worst = std::min(worst, shareOf(value));
  return worst;
}

std::vector<HeatMap> heatMapsOf(const StageRecord& stage, size_t& dropped) {
  dropped = 0;
  std::map<std::string, std::vector<Entry>> groups;
  for (const Measurement& m : stage.measurements) {
    const auto a = m.labels.find("a");
    const auto b = m.labels.find("b");
    if (a == m.labels.end() || b == m.labels.end() || m.isText() || m.samples.empty()) continue;
    if (!std::all_of(m.samples.begin(), m.samples.end(), [](double x) { return std::isfinite(x); })) continue;
    Labels rest = m.labels;
    for (const char* label : {"a", "b", "device"}) rest.erase(label);
    const std::string text = labelsText(rest);
    const std::string name = m.metric.substr(m.metric.find('.') + 1);
    groups[text.empty() ? name : name + ", " + text].push_back({a->second, b->second, &m});
  }
  std::vector<HeatMap> maps;
  for (const auto& [title, entries] : groups) {
    HeatMap map = mapOf(title, entries);
    if (map.names.size() <= kMostNames)
      maps.push_back(std::move(map));
    else
      ++dropped;
  }
  std::stable_sort(maps.begin(), maps.end(),
                   [](const HeatMap& x, const HeatMap& y) { return x.worstShare() < y.worstShare(); });
  if (maps.size() > kMostMaps) {
    dropped += maps.size() - kMostMaps;
    maps.erase(maps.begin() + kMostMaps, maps.end());
  }
  return maps;
}

void addHeatMaps(View& stageView, const StageRecord& stage) {
  size_t dropped = 0;
  std::vector<View> views;
  for (const HeatMap& map : heatMapsOf(stage, dropped)) views.push_back(mapView(map));
  stageView.list("heat_maps", std::move(views));
  stageView.text("heat_maps_dropped", dropped > 0 ? std::to_string(dropped) : "");
}

}  // namespace muster
