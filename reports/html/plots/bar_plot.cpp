// SPDX-License-Identifier: Apache-2.0
// Per-device bars against the expectation.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/html/page/symbols.h"
#include "reports/html/plots/axis.h"
#include "reports/html/plots/plots.h"
#include "runner/core/text.h"
#include "runner/record/markup.h"

namespace muster {
namespace {

constexpr size_t kMaxBars = 24;
constexpr double kBarWidth = 380;
constexpr double kBarLeft = 64;
constexpr double kBarRight = 268;
constexpr double kBarTop = 36;
constexpr double kRow = 18;

double largestOf(const BarPlot& plot) {
  double largest = std::isfinite(plot.limit) ? std::fabs(plot.limit) : 0;
  for (const auto& bar : plot.bars)
    if (std::isfinite(bar.value)) largest = std::max(largest, std::fabs(bar.value));
  return largest > 0 ? largest : 1;
}

/// Deviating bars first; the order of devices is kept within each kind.
std::vector<Bar> drawnBars(const BarPlot& plot) {
  std::vector<Bar> bars = plot.bars;
  if (bars.size() <= kMaxBars) return bars;
  std::stable_sort(bars.begin(), bars.end(),
                   [](const Bar& a, const Bar& b) { return a.outcome < b.outcome; });
  bars.resize(kMaxBars);
  return bars;
}

std::string barRow(const Bar& bar, double y, double largest) {
  const double length =
      std::isfinite(bar.value) ? (kBarRight - kBarLeft) * std::fabs(bar.value) / largest : 0;
  const std::string label = escapeMarkup(printable(bar.label, 9));
  const std::string value = escapeMarkup(bar.text);
  const std::string symbol =
      bar.outcome == Outcome::kPass ? "" : std::string(" ") + outcomeSymbol(bar.outcome);
  return fmt::format(
      "<g class=\"bar {0}\" data-tip=\"{1}: {2} ({0})\"><title>{1}: {2} ({0})</title>"
      "<text class=\"name\" x=\"{3:.0f}\" y=\"{4:.1f}\">{5}</text>"
      "<rect x=\"{6:.0f}\" y=\"{7:.1f}\" width=\"{8:.1f}\" height=\"12\" rx=\"1.5\"/>"
      "<text class=\"value\" x=\"{9:.0f}\" y=\"{4:.1f}\">{2}{10}</text></g>",
      outcomeName(bar.outcome), escapeMarkup(bar.label), value, kBarLeft - 8, y + 10, label, kBarLeft, y,
      length, kBarRight + 8, symbol);
}

std::string limitLine(const BarPlot& plot, double largest, double bottom) {
  if (!std::isfinite(plot.limit)) return "";
  const double x = kBarLeft + (kBarRight - kBarLeft) * std::fabs(plot.limit) / largest;
  // The text grows towards the roomier side of the line.
  const bool leftward = x > (kBarLeft + kBarRight) / 2;
  return fmt::format(
      "<line class=\"limit\" x1=\"{0:.1f}\" y1=\"{1:.0f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\"/>"
      "<text class=\"limit-text {3}\" x=\"{4:.1f}\" y=\"{5:.0f}\">{6}</text>",
      x, kBarTop - 6, bottom, leftward ? "end" : "start", leftward ? x + 4 : x - 4, kBarTop - 10,
      escapeMarkup(plot.limitText));
}

}  // namespace

std::string titleSvg(const std::string& title, double& height) {
  constexpr size_t kLineBytes = 62;
  std::string first = printable(title, 2 * kLineBytes), second;
  if (first.size() > kLineBytes) {
    const size_t space = first.rfind(' ', kLineBytes);
    const size_t cut = space == std::string::npos ? first.size() : space;
    second = printable(first.substr(std::min(cut + 1, first.size())), kLineBytes);
    first = printable(first.substr(0, cut), kLineBytes);
  }
  height = second.empty() ? 0 : 13;
  std::string svg = fmt::format("<text class=\"title\" x=\"0\" y=\"11\">{}</text>", escapeMarkup(first));
  if (!second.empty())
    svg += fmt::format("<text class=\"title\" x=\"0\" y=\"24\">{}</text>", escapeMarkup(second));
  return svg;
}

std::string barPlotSvg(const BarPlot& plot) {
  const std::vector<Bar> bars = drawnBars(plot);
  const double largest = largestOf(plot);
  const double bottom = kBarTop + kRow * static_cast<double>(bars.size());
  std::string title = plot.title;
  if (bars.size() < plot.bars.size())
    title += fmt::format(" ({} of {}, the worst; the table shows all)", bars.size(), plot.bars.size());
  double more = 0;
  const std::string lines = titleSvg(title, more);
  std::string svg = fmt::format(
      "<svg class=\"plot bars\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\">{}"
      "<g transform=\"translate(0 {:.0f})\">",
      kBarWidth, bottom + 4 + more, escapeMarkup(title), lines, more);
  svg += fmt::format("<line class=\"axis\" x1=\"{0:.0f}\" y1=\"{1:.0f}\" x2=\"{0:.0f}\" y2=\"{2:.1f}\"/>",
                     kBarLeft, kBarTop - 3, bottom);
  for (size_t i = 0; i < bars.size(); ++i)
    svg += barRow(bars[i], kBarTop + kRow * static_cast<double>(i), largest);
  return svg + limitLine(plot, largest, bottom) + "</g></svg>";
}

}  // namespace muster
