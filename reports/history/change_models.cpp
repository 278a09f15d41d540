// SPDX-License-Identifier: Apache-2.0
// Fits steps and slopes in O(n log n).
#include "reports/history/change_models.h"
#include "runner/core/statistics.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace muster::history {
namespace {

constexpr double kMedianFactor = 1.2533;  // sqrt(pi/2): standard error of a median against that of a mean
constexpr int kHalvings = 40;             // of a bracket around a slope: far below any noise

/// The median of values that are added one by one, and their absolute residuals about it: two heaps.
class RunningMedian {
 public:
  void clear() {
    low_.clear();
    high_.clear();
    lowSum_ = highSum_ = 0;
  }

  void add(double value) {
    if (low_.empty() || value <= low_.front())
      push(low_, lowSum_, value, std::less<>());
    else
      push(high_, highSum_, value, std::greater<>());
    if (low_.size() > high_.size() + 1)
      push(high_, highSum_, pop(low_, lowSum_, std::less<>()), std::greater<>());
    else if (high_.size() > low_.size())
      push(low_, lowSum_, pop(high_, highSum_, std::greater<>()), std::less<>());
  }

  [[nodiscard]] double median() const {
    return low_.size() > high_.size() ? low_.front() : (low_.front() + high_.front()) / 2;
  }

  [[nodiscard]] double residual() const {
    const double surplus = static_cast<double>(low_.size()) - static_cast<double>(high_.size());
    return std::max(0.0, highSum_ - lowSum_ + median() * surplus);
  }

 private:
  template <typename Order>
  static void push(std::vector<double>& heap, double& sum, double value, Order order) {
    heap.push_back(value);
    std::push_heap(heap.begin(), heap.end(), order);
    sum += value;
  }
  template <typename Order>
  static double pop(std::vector<double>& heap, double& sum, Order order) {
    std::pop_heap(heap.begin(), heap.end(), order);
    const double value = heap.back();
    heap.pop_back();
    sum -= value;
    return value;
  }

  std::vector<double> low_, high_;  ///< the lower half with the largest on top, the upper with the smallest
  double lowSum_ = 0, highSum_ = 0;
};

/// The standard error of a median of n values of standard deviation 1.
double medianError(size_t n) {
  return (n < 3 ? 1.0 : kMedianFactor) / std::sqrt(static_cast<double>(n));
}

/// The slopes of all pairs of runs at different times, counted without listing them: a pair rises by more
/// than a slope where it still rises once that slope is taken off.
class PairSlopes {
 public:
  PairSlopes(const std::vector<double>& days, const std::vector<double>& values)
      : days_(days), values_(values), left_(values.size()), merged_(values.size()) {
    const size_t n = days.size();
    pairs_ = n * (n - 1) / 2;
    for (size_t begin = 0, end = 0; begin < n; begin = end) {
      while (end < n && days[end] == days[begin]) ++end;
      pairs_ -= (end - begin) * (end - begin - 1) / 2;
    }
  }

  [[nodiscard]] size_t pairs() const { return pairs_; }

  /// Pairs that are steeper than `slope`, or with `sign` -1 those less steep than -`slope`.
  size_t steeper(double slope, double sign = 1) {
    const size_t n = days_.size();
    for (size_t i = 0; i < n; ++i) left_[i] = sign * values_[i] - slope * days_[i];
    for (size_t begin = 0, end = 0; begin < n; begin = end) {  // runs at one time are no pair: let none rise
      while (end < n && days_[end] == days_[begin]) ++end;
      if (end - begin > 1)
        std::sort(left_.begin() + static_cast<long>(begin), left_.begin() + static_cast<long>(end),
                  std::greater<>());
    }
    size_t rising = 0;
    for (size_t width = 1; width < n; width *= 2) {
      for (size_t at = 0; at < n; at += 2 * width)
        rising += merge(at, std::min(at + width, n), std::min(at + 2 * width, n));
      left_.swap(merged_);
    }
    return rising;
  }

  double median() {
    const auto [low, high] = std::minmax_element(values_.begin(), values_.end());
    double reach = (*high - *low) / days_.back();
    if (!(reach > 0)) return 0;
    while (std::isfinite(2 * reach) && (2 * steeper(reach) >= pairs_ || 2 * steeper(reach, -1) >= pairs_))
      reach *= 2;
    // The lower of the middle two where they are even, and the upper: by its mirror image.
    return (quantile(reach, 1) - quantile(reach, -1)) / 2;
  }

 private:
  /// The largest slope that half of the pairs are not steeper than, seen with `sign`.
  double quantile(double reach, double sign) {
    double low = -reach, high = reach;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = (low + high) / 2;
      (2 * steeper(middle, sign) > pairs_ ? low : high) = middle;
    }
    return high;
  }

  /// Merges two sorted neighbours; how many pairs rise from the first to the second.
  size_t merge(size_t begin, size_t middle, size_t end) {
    size_t rising = 0, a = begin, b = middle;
    for (size_t to = begin; to < end; ++to) {
      const bool first = a < middle && (b == end || left_[a] < left_[b]);
      if (!first) rising += a - begin;
      merged_[to] = first ? left_[a++] : left_[b++];
    }
    return rising;
  }

  const std::vector<double>& days_;
  const std::vector<double>& values_;
  std::vector<double> left_, merged_;
  size_t pairs_ = 0;
};

/// The sum of squared distances of the times from their mean.
double squaresOf(const std::vector<double>& days) {
  double mean = 0, squares = 0;
  for (const double day : days) mean += day / static_cast<double>(days.size());
  for (const double day : days) squares += (day - mean) * (day - mean);
  return squares;
}

}  // namespace

ChangeModel bestStep(const NoisyValues& series) {
  const auto& values = series.values;
  const size_t n = values.size();
  const double centre = values.front();  // sums of differences from it keep their digits
  std::vector<double> medians(n), residuals(n);
  RunningMedian growing;
  for (size_t i = 0; i < n; ++i) {
    growing.add(values[i] - centre);
    medians[i] = growing.median();
    residuals[i] = growing.residual();
  }
  ChangeModel best;
  growing.clear();
  for (size_t at = n - 1; at > 0; --at) {
    growing.add(values[at] - centre);
    const double residual = residuals[at - 1] + growing.residual();
    if (residual > best.residual) continue;  // of equals the earliest split
    best.residual = residual;
    best.at = at;
    best.before = medians[at - 1] + centre;
    best.after = growing.median() + centre;
  }
  const double error =
      std::hypot(medianError(best.at), medianError(n - best.at)) * series.sigma * series.level;
  best.sigmas = std::fabs(best.after - best.before) / error;
  return best;
}

ChangeModel bestSlope(const NoisyValues& series) {
  ChangeModel model;
  const auto& [days, values, level, sigma] = series;
  PairSlopes slopes(days, values);
  if (slopes.pairs() == 0) return model;
  const double slope = slopes.median();
  std::vector<double> offsets;
  offsets.reserve(values.size());
  for (size_t i = 0; i < values.size(); ++i) offsets.push_back(values[i] - slope * days[i]);
  const double offset = medianOf(offsets);
  model.residual = 0;
  for (const double each : offsets) model.residual += std::fabs(each - offset);
  model.kind = ChangeKind::kSlope;
  model.before = offset;
  model.after = offset + slope * days.back();
  model.perDay = slope / level;
  model.sigmas = std::fabs(slope) * std::sqrt(squaresOf(days)) / (sigma * level);
  return model;
}

bool slopeMayExceed(const NoisyValues& series, double sigmas) {
  PairSlopes slopes(series.days, series.values);
  if (slopes.pairs() == 0) return false;
  const double slope = sigmas * series.sigma * series.level / std::sqrt(squaresOf(series.days));
  return 2 * slopes.steeper(slope) >= slopes.pairs() || 2 * slopes.steeper(slope, -1) >= slopes.pairs();
}

}  // namespace muster::history
