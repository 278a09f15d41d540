// SPDX-License-Identifier: Apache-2.0
// Lines over time or message size, one for each device.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "reports/html/plots/axis.h"
#include "reports/html/plots/plots.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/record/markup.h"

namespace muster {
namespace {

constexpr double kLineWidth = 380;
constexpr double kHeight = 168;
constexpr double kLineLeft = 46;
constexpr double kLineRight = 336;
constexpr double kLineTop = 26;
constexpr double kBottom = 138;

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void add(double value) {
    if (!(std::fabs(value) < 1e300)) return;  // so that differences stay finite
    low = std::min(low, value);
    high = std::max(high, value);
  }
  [[nodiscard]] bool empty() const { return low > high; }
};

/// What both axes need: ranges, units and positions.
struct Frame {
  Axis x;
  Axis y;
  DisplayUnit xUnit;
  DisplayUnit yUnit;
};

/// From zero unless the values are far from it, and never narrower than a fifth of them: a wobble of 1% must
/// not look like a fall.
Axis makeYAxis(Range range) {
  if (range.empty()) range = {0, 1};
  if (range.low > 0 && range.low < 0.6 * range.high) range.low = 0;
  const double least = 0.2 * std::max(std::fabs(range.high), std::fabs(range.low));
  const double spread = range.high - range.low;
  const double pad = std::max(spread * 0.1, (least - spread) / 2);
  if (range.low == 0 && range.high == 0) return {0, 1, kBottom, kLineTop, false};
  return {range.low == 0 ? 0 : range.low - pad, range.high + pad, kBottom, kLineTop, false};
}

/// Whole powers of ten around the values.
Axis makeLogYAxis(Range range) {
  if (range.empty()) range = {1, 10};
  const double low = std::pow(10, std::floor(std::log10(range.low)));
  const double high = std::pow(10, std::ceil(std::log10(range.high)));
  return {low, high > low ? high : 10 * low, kBottom, kLineTop, true};
}

Axis makeXAxis(Range range, bool logarithmic) {
  if (range.empty()) range = {logarithmic ? 1.0 : 0.0, logarithmic ? 10.0 : 1.0};
  if (range.low == range.high) range.high = logarithmic ? range.low * 2 : range.low + 1;
  return {range.low, range.high, kLineLeft, kLineRight, logarithmic};
}

Frame makeFrame(const LinePlot& plot) {
  Range x, y;
  for (const auto& line : plot.lines) {
    for (const double value : line.x)
      if (!plot.logX || value > 0) x.add(value);
    for (const double value : line.y)
      if (!plot.logY || value > 0) y.add(value);
  }
  if (!plot.logY || plot.limit > 0) y.add(plot.limit);
  Frame frame{makeXAxis(x, plot.logX), plot.logY ? makeLogYAxis(y) : makeYAxis(y), {}, {}};
  frame.xUnit = displayUnit(frame.x.high, plot.xUnit);
  frame.yUnit = displayUnit(std::max(std::fabs(frame.y.high), std::fabs(frame.y.low)), plot.unit);
  return frame;
}

/// In the unit shown; of a logarithmic axis at most five powers of ten.
std::vector<double> yTickValues(const Frame& frame) {
  const double low = frame.y.low * frame.yUnit.factor, high = frame.y.high * frame.yUnit.factor;
  if (!frame.y.logarithmic) return roundTicks(low, high, 4);
  const int decades = static_cast<int>(std::lround(std::log10(high / low)));
  std::vector<double> ticks;
  for (int i = 0; i <= decades; i += decades / 5 + 1) ticks.push_back(low * std::pow(10, i));
  return ticks;
}

std::string yTicks(const Frame& frame) {
  std::string svg;
  for (const double tick : yTickValues(frame)) {
    const double y = frame.y.at(tick / frame.yUnit.factor);
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{:.0f}\" y1=\"{:.1f}\" x2=\"{:.0f}\" y2=\"{:.1f}\"/>"
        "<text class=\"tick end\" x=\"{:.0f}\" y=\"{:.1f}\">{}</text>",
        kLineLeft, y, kLineRight, y, kLineLeft - 5, y + 3, plainNumber(tick));
  }
  return svg;
}

std::string xTick(const Frame& frame, double value, const std::string& text) {
  const double x = frame.x.at(value);
  return fmt::format("<text class=\"tick middle\" x=\"{:.1f}\" y=\"{:.0f}\">{}</text>", x, kBottom + 13,
                     escapeMarkup(text));
}

/// On a logarithmic axis at most five of the x values themselves, which are message sizes.
std::string logTicks(const LinePlot& plot, const Frame& frame) {
  std::vector<double> values;
  for (const auto& line : plot.lines)
    std::copy_if(line.x.begin(), line.x.end(), std::back_inserter(values),
                 [](double x) { return x > 0 && std::isfinite(x); });
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  const size_t step = values.size() / 5 + 1;
  std::string svg;
  for (size_t i = 0; i < values.size(); i += step)
    svg += xTick(frame, values[i], formatQuantity(values[i], plot.xUnit, 3));
  return svg;
}

std::string xTicks(const LinePlot& plot, const Frame& frame) {
  if (plot.logX) return logTicks(plot, frame);
  std::string svg;
  const auto ticks = roundTicks(frame.x.low * frame.xUnit.factor, frame.x.high * frame.xUnit.factor, 5);
  for (const double tick : ticks) {
    const bool last = tick == ticks.back();
    svg +=
        xTick(frame, tick / frame.xUnit.factor, plainNumber(tick) + (last ? " " + frame.xUnit.suffix : ""));
  }
  return svg;
}

std::string pathOf(const Line& line, const Frame& frame) {
  std::string path;
  bool pen = false;
  for (size_t i = 0; i < std::min(line.x.size(), line.y.size()); ++i) {
    const double x = frame.x.at(line.x[i]);
    const double y = frame.y.at(line.y[i]);
    if (!(std::fabs(x) < 1e5) || !(std::fabs(y) < 1e5)) {
      pen = false;
      continue;
    }
    path += fmt::format("{}{:.1f} {:.1f}", pen ? "L" : "M", x, y);
    pen = true;
  }
  return path;
}

/// The names of marked lines at their ends, pushed apart so that none covers another.
std::string lineNames(const LinePlot& plot, const Frame& frame) {
  constexpr double kStep = 10;
  std::vector<std::pair<double, const Line*>> ends;
  for (const Line& line : plot.lines) {
    if (!line.marked || line.y.empty()) continue;
    const double y = frame.y.at(line.y.back());
    if (std::fabs(y) < 1e5) ends.emplace_back(y, &line);
  }
  std::stable_sort(ends.begin(), ends.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string svg;
  double least = 0;
  for (const auto& [y, line] : ends) {
    const double place = std::max(y + 3, least);
    least = place + kStep;
    svg += fmt::format("<text class=\"line-name\" x=\"{:.0f}\" y=\"{:.1f}\">{}</text>", kLineRight + 4, place,
                       escapeMarkup(printable(line->label, 7)));
  }
  return svg;
}

std::string bandsSvg(const LinePlot& plot, const Frame& frame) {
  std::string svg;
  for (const auto& [begin, end] : plot.bands) {
    const double left = std::clamp(frame.x.at(begin), kLineLeft, kLineRight);
    const double right = std::clamp(frame.x.at(end), kLineLeft, kLineRight);
    if (right > left)
      svg +=
          fmt::format("<rect class=\"band\" x=\"{:.1f}\" y=\"{:.0f}\" width=\"{:.1f}\" height=\"{:.0f}\"/>",
                      left, kLineTop, right - left, kBottom - kLineTop);
  }
  return svg;
}

std::string lineSvg(const Line& line, const Frame& frame) {
  const std::string path = pathOf(line, frame);
  if (path.empty()) return "";
  const std::string label = escapeMarkup(line.label);
  return fmt::format("<path class=\"line{}\" data-name=\"{}\" d=\"{}\"><title>{}</title></path>",
                     line.marked ? " marked" : "", label, path, label);
}

std::string limitSvg(const LinePlot& plot, const Frame& frame) {
  if (!std::isfinite(plot.limit)) return "";
  const double y = frame.y.at(plot.limit);
  return fmt::format(
      "<line class=\"limit\" x1=\"{:.0f}\" y1=\"{:.1f}\" x2=\"{:.0f}\" y2=\"{:.1f}\"/>"
      "<text class=\"limit-text end\" x=\"{:.0f}\" y=\"{:.1f}\">{}</text>",
      kLineLeft, y, kLineRight, y, kLineRight, y - 3, escapeMarkup(plot.limitText));
}

}  // namespace

std::string linePlotSvg(const LinePlot& plot) {
  const Frame frame = makeFrame(plot);
  const std::string title = plot.title + (frame.yUnit.suffix.empty() ? "" : " in " + frame.yUnit.suffix);
  double more = 0;
  const std::string lines = titleSvg(title, more);
  // The script turns positions back into values by these numbers: x, y and their units.
  std::string svg = fmt::format(
      "<svg class=\"plot lines\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\" "
      "data-x=\"{} {} {} {} {}\" data-x-unit=\"{}\" data-y=\"{} {} {} {} {}\" data-y-unit=\"{}\">"
      "{}<g class=\"area\" transform=\"translate(0 {:.0f})\">",
      kLineWidth, kHeight - 12 + more, escapeMarkup(title), kLineLeft, kLineRight,
      frame.x.low * frame.xUnit.factor, frame.x.high * frame.xUnit.factor, plot.logX ? "log" : "linear",
      escapeMarkup(frame.xUnit.suffix), kBottom, kLineTop, frame.y.low * frame.yUnit.factor,
      frame.y.high * frame.yUnit.factor, plot.logY ? "log" : "linear", escapeMarkup(frame.yUnit.suffix),
      lines, more);
  svg += bandsSvg(plot, frame) + yTicks(frame) + xTicks(plot, frame);
  for (const auto& line : plot.lines)
    if (!line.marked) svg += lineSvg(line, frame);
  for (const auto& line : plot.lines)
    if (line.marked) svg += lineSvg(line, frame);
  return svg + lineNames(plot, frame) + limitSvg(plot, frame) + "</g></svg>";
}

}  // namespace muster
