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

constexpr size_t kManyNodes = 16;     ///< from here on the median absolute deviation is known well enough
constexpr double kMadFreedom = 0.37;  ///< its efficiency: degrees of freedom of n values

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

struct Spread {
  double mean = 0, stddev = 0;
};

Spread spreadOf(const std::vector<double>& values) {
  const Summary summary = summarize(values);
  return {summary.mean, summary.stddev};
}

/// Of many values, those beyond what their median absolute deviation explains.
std::vector<bool> oddOfMany(const std::vector<double>& values, double p, double least) {
  const auto n = static_cast<double>(values.size());
  const double usual = medianOf(values);
  const double limit = studentQuantile(p / n, kMadFreedom * (n - 1)) * kMadToSigma * madOf(values, usual);
  std::vector<bool> odd;
  for (const double value : values) odd.push_back(std::fabs(value - usual) > std::max(least, limit));
  return odd;
}

/// The value that lies furthest from the middle of those that are not odd.
size_t furthest(const std::vector<double>& values, const std::vector<bool>& odd, double middle) {
  size_t at = values.size();
  for (size_t i = 0; i < values.size(); ++i)
    if (!odd[i] && (at == values.size() || std::fabs(values[i] - middle) > std::fabs(values[at] - middle)))
      at = i;
  return at;
}

/// Of few values one after another: whether the furthest one fits the others (its deleted residual).
std::vector<bool> oddOfFew(const std::vector<double>& values, double p, double least) {
  std::vector<bool> odd(values.size(), false);
  const double tail = p / static_cast<double>(values.size());
  for (size_t left = values.size(); left >= kLeastShiftNodes; --left) {
    std::vector<double> rest;
    for (size_t i = 0; i < values.size(); ++i)
      if (!odd[i]) rest.push_back(values[i]);
    const size_t at = furthest(values, odd, medianOf(rest));
    rest.erase(std::find(rest.begin(), rest.end(), values[at]));
    const auto n = static_cast<double>(rest.size());
    const Spread others = spreadOf(rest);
    const double limit = studentQuantile(tail, n - 1) * others.stddev * std::sqrt(1 + 1 / n);
    if (!(std::fabs(values[at] - others.mean) > std::max(least, limit))) break;
    odd[at] = true;
  }
  return odd;
}

std::vector<bool> oddOnes(const std::vector<double>& values, double p, double least) {
  return values.size() < kManyNodes ? oddOfFew(values, p, least) : oddOfMany(values, p, least);
}

}  // namespace

void ShiftFinder::add(const std::string& node, const std::vector<Point>& before,
                      const std::vector<Point>& after) {
  const auto old = mediansOf(before), now = mediansOf(after);
  for (const bool later : {false, true})
    for (const Point& point : later ? after : before) {
      Moved& moved = figures_[point.figure.number];
      moved.figure = point.figure;
      (later ? moved.after : moved.before) = true;
    }
  for (const auto& [figure, value] : old) {
    const auto found = now.find(figure);
    const bool comparable =
        found != now.end() && std::isfinite(value) && std::isfinite(found->second) && value != 0;
    if (comparable) figures_[figure].nodes.push_back({node, value, found->second});
  }
}

void ShiftFinder::judge(const Moved& moved, double p, FleetShifts& out) {
  const FigureName& figure = moved.figure;
  const double least = onIntervalScale(figure) ? kLeastDegrees : kLeastChange;
  std::vector<double> changes;
  for (const NodeChange& node : moved.nodes) changes.push_back(changeOf(figure, node.before, node.after));
  const std::vector<bool> odd = oddOnes(changes, p, least);
  std::vector<double> others, before, after;
  for (size_t i = 0; i < changes.size(); ++i) {
    if (odd[i]) continue;
    others.push_back(changes[i]);
    before.push_back(moved.nodes[i].before);
    after.push_back(moved.nodes[i].after);
  }
  const double usual = medianOf(others);
  const auto n = static_cast<double>(others.size());
  const double noise = studentQuantile(p, n - 1) * spreadOf(others).stddev / std::sqrt(n);
  const bool shifted = std::fabs(usual) > std::max(least, noise);
  if (shifted)
    out.shifts.push_back({figure, changes.size(), medianOf(before), medianOf(after), usual, noise,
                          isWorse(figure.direction, usual)});
  out.alike += shifted ? 0 : 1;
  for (size_t i = 0; i < changes.size(); ++i)
    if (odd[i])
      out.odd.push_back({moved.nodes[i].node, figure, moved.nodes[i].before, moved.nodes[i].after, changes[i],
                         usual, isWorse(figure.direction, changes[i] - usual)});
}

FleetShifts ShiftFinder::finish() const {
  FleetShifts out;
  for (const auto& [number, moved] : figures_)
    if (moved.before != moved.after) (moved.before ? out.onlyBefore : out.onlyAfter).push_back(moved.figure);
  const size_t onBoth = figures_.size() - out.onlyBefore.size() - out.onlyAfter.size();
  const double p = kFalseAlarms / static_cast<double>(4 * std::max<size_t>(1, onBoth));
  for (const auto& [number, moved] : figures_) {
    if (moved.before != moved.after) continue;
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
