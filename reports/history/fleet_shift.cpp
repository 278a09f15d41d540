// SPDX-License-Identifier: Apache-2.0
// Finds figures that moved between two acceptances of a fleet.
#include "reports/history/fleet_shift.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "reports/history/compare.h"
#include "reports/history/trend.h"
#include "runner/core/statistics.h"

namespace muster::history {
namespace {

constexpr size_t kManyNodes = 16;     ///< from here on the median absolute deviation is known well enough
constexpr double kMadFreedom = 0.37;  ///< its efficiency: degrees of freedom of n values
constexpr size_t kLeastOthers = 4;    ///< values, devices of a node: fewer do not say which one is odd

/// The devices' medians on one side, by figure.
using DevicesByFigure = std::map<int64_t, std::map<std::string_view, double>>;

DevicesByFigure devicesByFigure(const std::vector<Point>& points) {
  DevicesByFigure out;
  for (const Point& point : points) out[point.figure.number][point.device.name] = point.median;
  return out;
}

double middleOf(const std::map<std::string_view, double>& devices) {
  std::vector<double> values;
  for (const auto& [device, value] : devices) values.push_back(value);
  return medianOf(values);
}

bool isComparable(double before, double after) {
  return std::isfinite(before) && std::isfinite(after) && before != 0;
}

double changeOf(const FigureName& figure, double before, double after) {
  return onIntervalScale(figure) ? after - before : (after - before) / std::fabs(before);
}

double leastOf(const FigureName& figure) {
  return onIntervalScale(figure) ? kLeastDegrees : kLeastChange;
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

/// A part of few values that lies apart from the others.
struct Apart {
  std::vector<size_t> values;
  double times = 1;  ///< as far as chance explains, at least
};

/// How many ways there are to choose k of n.
double ways(size_t n, size_t k) {
  double count = 1;
  for (size_t i = 0; i < k; ++i) count *= static_cast<double>(n - i) / static_cast<double>(i + 1);
  return count;
}

/// How far `part` lies from `rest`, in times of what chance explains: as two kinds with a spread in common,
/// or each of its values as one that does not belong to the rest. `tail` is for one division into two.
double timesApart(const std::vector<double>& part, const std::vector<double>& rest, double tail,
                  double least) {
  const auto k = static_cast<double>(part.size()), m = static_cast<double>(rest.size());
  const Spread own = spreadOf(part), others = spreadOf(rest);
  double nearest = std::numeric_limits<double>::infinity();
  for (const double value : part) nearest = std::min(nearest, std::fabs(value - others.mean));
  const double ownSquares = part.size() > 1 ? (k - 1) * own.stddev * own.stddev : 0;
  const double common = std::sqrt((ownSquares + (m - 1) * others.stddev * others.stddev) / (k + m - 2));
  const double kinds = studentQuantile(tail, k + m - 2) * common * std::sqrt(1 / k + 1 / m);
  const double strangers = studentQuantile(tail, m - 1) * others.stddev * std::sqrt(1 + 1 / m);
  return std::max(std::fabs(own.mean - others.mean) / std::max(least, kinds),
                  nearest / std::max(least, strangers));
}

/// The lowest or highest values, half of them at most, that lie furthest apart; none within chance. Every
/// division into two could have been looked at, and each counts.
Apart furthestApart(const std::vector<double>& values, const std::vector<size_t>& sorted, double p,
                    double least) {
  const size_t n = sorted.size();
  Apart found;
  for (size_t k = 1; 2 * k <= n; ++k)
    for (const bool low : {true, false}) {
      std::vector<double> part, rest;
      std::vector<size_t> places;
      for (size_t i = 0; i < n; ++i) {
        const bool in = low ? i < k : i >= n - k;
        (in ? part : rest).push_back(values[sorted[i]]);
        if (in) places.push_back(sorted[i]);
      }
      // Of two halves the one that changed is odd.
      if (2 * k == n && std::fabs(spreadOf(part).mean) < std::fabs(spreadOf(rest).mean)) continue;
      // One odd value is by far the most frequent: half of the chance of a false finding is for it.
      const double sizes = k == 1 ? 1 : static_cast<double>(2 * (n / 2 - 1));
      const double times = timesApart(part, rest, p / (2 * ways(n, k) * sizes), least);
      if (times > found.times) found = {std::move(places), times};
    }
  return found;
}

/// Of few values, which hide each other in any measure of their spread: part after part that lies apart.
std::vector<bool> oddOfFew(const std::vector<double>& values, double p, double least) {
  std::vector<bool> odd(values.size(), false);
  std::vector<size_t> left(values.size());
  std::iota(left.begin(), left.end(), size_t{0});
  std::sort(left.begin(), left.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  while (left.size() >= kLeastOthers) {
    const Apart apart = furthestApart(values, left, p, least);
    if (apart.values.empty()) break;
    for (const size_t at : apart.values) odd[at] = true;
    std::erase_if(left, [&](size_t at) { return odd[at]; });
  }
  return odd;
}

std::vector<bool> oddOnes(const std::vector<double>& values, double p, double least) {
  return values.size() < kManyNodes ? oddOfFew(values, p, least) : oddOfMany(values, p, least);
}

}  // namespace

void ShiftFinder::add(const std::string& node, const std::vector<Point>& before,
                      const std::vector<Point>& after) {
  const DevicesByFigure old = devicesByFigure(before), now = devicesByFigure(after);
  for (const bool later : {false, true})
    for (const Point& point : later ? after : before) {
      Moved& moved = figures_[point.figure.number];
      moved.figure = point.figure;
      (later ? moved.after : moved.before) = true;
    }
  for (const auto& [figure, devices] : old) {
    const auto found = now.find(figure);
    if (found == now.end()) continue;
    Moved& moved = figures_[figure];
    if (std::exchange(moved.last, node) != node) ++moved.onBoth;
    if (!isComparable(middleOf(devices), middleOf(found->second))) continue;
    NodeChange change{node, middleOf(devices), middleOf(found->second), {}};
    for (const auto& [device, value] : devices)
      if (const auto same = found->second.find(device);
          same != found->second.end() && isComparable(value, same->second))
        change.devices.push_back({&*devices_.emplace(device).first, value, same->second});
    moved.nodes.push_back(std::move(change));
  }
}

bool ShiftFinder::isJudged(const Moved& moved) {
  return std::min(moved.onBoth, moved.nodes.size()) >= kLeastShiftNodes;
}

void ShiftFinder::judgeNodes(const Moved& moved, double p, FleetShifts& out) {
  const FigureName& figure = moved.figure;
  const double least = leastOf(figure);
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
      out.odd.push_back({moved.nodes[i].node, "", figure, moved.nodes[i].before, moved.nodes[i].after,
                         changes[i], usual, isWorse(figure.direction, changes[i] - usual)});
}

void ShiftFinder::judgeDevices(const Moved& moved, double p, FleetShifts& out) {
  const FigureName& figure = moved.figure;
  std::vector<double> apart;  // from what is usual in their nodes
  std::vector<OddNode> all;
  for (const NodeChange& node : moved.nodes) {
    if (node.devices.size() < kLeastOthers) continue;
    std::vector<double> changes;
    for (const DeviceChange& one : node.devices) changes.push_back(changeOf(figure, one.before, one.after));
    for (size_t i = 0; i < changes.size(); ++i) {
      const DeviceChange& one = node.devices[i];
      std::vector<double> others = changes;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      const double usual = medianOf(others);
      apart.push_back(changes[i] - usual);
      all.push_back({node.node, *one.device, figure, one.before, one.after, changes[i], usual,
                     isWorse(figure.direction, apart.back())});
    }
  }
  if (apart.empty()) return;
  const std::vector<bool> odd = oddOnes(apart, p, leastOf(figure));
  for (size_t i = 0; i < all.size(); ++i)
    if (odd[i]) out.odd.push_back(std::move(all[i]));
}

FleetShifts ShiftFinder::finish() const {
  FleetShifts out;
  for (const auto& [number, moved] : figures_)
    if (moved.before != moved.after) (moved.before ? out.onlyBefore : out.onlyAfter).push_back(moved.figure);
  // What one record alone has makes nothing else less certain.
  const auto judged =
      static_cast<size_t>(std::count_if(figures_.begin(), figures_.end(), [](const auto& one) {
        return one.second.before == one.second.after && isJudged(one.second);
      }));
  constexpr size_t kTests = 6;  // of the fleet, of nodes and of devices, for better and for worse
  const double p = kFalseAlarms / static_cast<double>(kTests * std::max<size_t>(1, judged));
  for (const auto& [number, moved] : figures_) {
    if (moved.before != moved.after) continue;
    if (moved.onBoth < kLeastShiftNodes) out.few.insert(number);
    if (!isJudged(moved)) {
      ++out.tooFew;
      continue;
    }
    judgeNodes(moved, p, out);
    judgeDevices(moved, p, out);
  }
  worstFirst(out.shifts);
  worstFirst(out.odd);
  return out;
}

}  // namespace muster::history
