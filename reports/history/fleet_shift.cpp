// SPDX-License-Identifier: Apache-2.0
// Finds figures that moved between two acceptances of a fleet.
#include "reports/history/fleet_shift.h"

#include <algorithm>
#include <cmath>

#include "reports/history/compare.h"
#include "reports/history/trend.h"
#include "runner/core/statistics.h"

namespace muster::history {
namespace {

constexpr double kMedianError = 1.2533;  ///< standard error of a median over that of a mean, of normal values

/// The median over the devices of one side, by figure.
std::map<int64_t, double> mediansOf(const std::vector<Point>& points) {
  std::map<int64_t, std::vector<double>> values;
  for (const Point& point : points) values[point.figure.number].push_back(point.median);
  std::map<int64_t, double> medians;
  for (const auto& [figure, list] : values) medians[figure] = medianOf(list);
  return medians;
}

double changeOf(const FigureName& figure, double before, double after) {
  return onIntervalScale(figure) ? after - before : (after - before) / std::fabs(before);
}

template <typename T>
void worstFirst(std::vector<T>& list) {
  const auto size = [](const T& one) {
    return std::fabs(one.change) / (onIntervalScale(one.figure) ? 100 : 1);
  };
  std::stable_sort(list.begin(), list.end(),
                   [&](const T& a, const T& b) { return a.worse != b.worse ? a.worse : size(a) > size(b); });
}

}  // namespace

void ShiftFinder::add(const std::string& node, const std::vector<Point>& before,
                      const std::vector<Point>& after) {
  const auto old = mediansOf(before), now = mediansOf(after);
  for (const Point& point : before) figures_[point.figure.number].figure = point.figure;
  for (const auto& [figure, value] : old) {
    const auto found = now.find(figure);
    const bool comparable =
        found != now.end() && std::isfinite(value) && std::isfinite(found->second) && value != 0;
    if (comparable) figures_[figure].nodes.push_back({node, value, found->second});
  }
}

void ShiftFinder::judge(const Moved& moved, double p, FleetShifts& out) {
  const FigureName& figure = moved.figure;
  std::vector<double> changes, before, after;
  for (const NodeChange& node : moved.nodes) {
    changes.push_back(changeOf(figure, node.before, node.after));
    before.push_back(node.before);
    after.push_back(node.after);
  }
  const auto n = static_cast<double>(changes.size());
  const double usual = medianOf(changes), sigma = kMadToSigma * madOf(changes, usual);
  const double least = onIntervalScale(figure) ? kLeastDegrees : kLeastChange;
  const double noise = studentQuantile(p, n - 1) * kMedianError * sigma / std::sqrt(n);
  const bool shifted = std::fabs(usual) > std::max(least, noise);
  if (shifted)
    out.shifts.push_back({figure, changes.size(), medianOf(before), medianOf(after), usual, noise,
                          isWorse(figure.direction, usual)});
  out.alike += shifted ? 0 : 1;
  const double own = std::max(least, studentQuantile(p / n, n - 1) * sigma);
  for (size_t i = 0; i < changes.size(); ++i)
    if (std::fabs(changes[i] - usual) > own)
      out.odd.push_back({moved.nodes[i].node, figure, before[i], after[i], changes[i], usual,
                         isWorse(figure.direction, changes[i] - usual)});
}

FleetShifts ShiftFinder::finish() const {
  FleetShifts out;
  const double p = kFalseAlarms / static_cast<double>(4 * std::max<size_t>(1, figures_.size()));
  for (const auto& [number, moved] : figures_) {
    if (moved.nodes.size() < kLeastShiftNodes)
      ++out.tooFew;
    else
      judge(moved, p, out);
  }
  worstFirst(out.shifts);
  worstFirst(out.odd);
  return out;
}

}  // namespace muster::history
