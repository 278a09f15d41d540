// SPDX-License-Identifier: Apache-2.0
// Strip plots: every device as a dot, beside limit and median.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "reports/fleet/render/fleet_sections.h"
#include "reports/html/plots/axis.h"
#include "runner/core/text.h"
#include "runner/record/markup.h"

namespace muster::fleet {
namespace {

constexpr double kWidth = 340, kLeft = 8, kRight = 332;
constexpr double kTop = 44, kBase = 112, kStep = 3.2;  ///< of the dots
constexpr int kMostInColumn = 21;
constexpr size_t kMostOutliers = 3;

/// The dots of values that are about the same stand above each other. Of more than fit the column is full.
std::string dots(const std::vector<double>& xs) {
  std::map<int, int> columns;
  std::string path;
  for (const double x : xs) {
    const int column = static_cast<int>(std::lround(x / kStep));
    const int at = columns[column]++;
    if (at >= kMostInColumn) continue;
    path += fmt::format("M{:.1f} {:.1f}h0", column * kStep, kBase - 4 - at * kStep);
  }
  return path;
}

std::string label(const char* klass, double x, double y, const std::string& text) {
  const char* anchor = x > kWidth * 2 / 3 ? "end" : x < kWidth / 3 ? "start" : "middle";
  return fmt::format("<text class=\"{} {}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", klass, anchor,
                     std::clamp(x, kLeft, kRight), y, escapeMarkup(text));
}

/// Worse than its limit, or without one further from the median than all but very few.
bool isOdd(const KeyFigure& figure, double value) {
  if (!std::isnan(figure.limit)) return figure.higherIsBetter ? value < figure.limit : value > figure.limit;
  return figure.higherIsBetter ? value < 0.95 * figure.median : value > figure.median + 10;
}

}  // namespace

std::string stripPlot(const Fleet& fleet, const KeyFigure& figure, const std::string& title) {
  if (figure.points.empty()) return "";
  const auto [least, most] = std::minmax(figure.points.front().value, figure.points.back().value);
  double low = least, high = most;
  if (!std::isnan(figure.limit)) low = std::min(low, figure.limit), high = std::max(high, figure.limit);
  const double pad = std::max((high - low) * 0.06, std::abs(high) * 0.01);
  const Axis axis{low - pad, high + pad, kLeft, kRight, false};
  const DisplayUnit unit = displayUnit(std::max(std::abs(low), std::abs(high)), figure.unit);
  const auto number = [&](double value) { return fmt::format("{:.4g}", value * unit.factor); };
  std::vector<double> normal, odd;
  for (const KeyFigure::Point& point : figure.points)
    (isOdd(figure, point.value) ? odd : normal).push_back(axis.at(point.value));
  std::string svg = fmt::format(
      "<svg class=\"strip-plot\" viewBox=\"0 0 {} 142\" role=\"img\" aria-label=\"{}\">"
      "<text class=\"title\" x=\"{}\" y=\"12\">{}</text><path class=\"axis\" d=\"M{} {}H{}\"/>",
      kWidth, escapeMarkup(printable(title, 80)), kLeft,
      escapeMarkup(printable(title, 40) + (unit.suffix.empty() ? "" : ", " + unit.suffix)), kLeft, kBase,
      kRight);
  svg += fmt::format("<path class=\"dots\" d=\"{}\"/><path class=\"dots odd\" d=\"{}\"/>", dots(normal),
                     dots(odd));
  const double median = axis.at(figure.median);
  svg += fmt::format("<path class=\"axis\" d=\"M{:.1f} {}v5\"/>", median, kBase) +
         label("tick", median, kBase + 15, "median " + number(figure.median));
  if (!std::isnan(figure.limit)) {
    const double x = axis.at(figure.limit);
    svg += fmt::format("<path class=\"limit\" d=\"M{:.1f} {}V{}\"/>", x, kTop, kBase) +
           label("tick", x, kBase + 27, "limit " + number(figure.limit));
  }
  for (size_t i = 0; i < std::min(kMostOutliers, odd.size()); ++i) {
    const KeyFigure::Point& point = figure.points[i];
    svg += label("odd-name", axis.at(point.value), 24 + 10 * static_cast<double>(i),
                 fmt::format("{} {}: {}", printable(fleet.nodes[point.node].name, 24),
                             printable(point.device, 12), number(point.value)));
  }
  return svg + "</svg>";
}

}  // namespace muster::fleet
