// SPDX-License-Identifier: Apache-2.0
// Finds the worst stretch of a series and the smallest detectable drop.
#include "runner/judge/series.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runner/core/statistics.h"
#include "runner/core/units.h"

namespace muster {
namespace {

/// Standard deviations that a stretch's mean may lie below the reference by noise. The reference itself lies
/// about 2 above the middle, so 4 remain for the worst of some 10^7 windows of a large fleet; the tolerance
/// comes on top.
constexpr double kNoiseSigmas = 6;
/// Further ones that a drop must exceed to be found in 9,999 of 10,000 cases: the noise may be overestimated.
constexpr double kCertainSigmas = 6;
/// With fewer windows, the edges of a drop may pass for noise.
constexpr double kFewWindows = 16;
/// Differences of neighbours that one drop changes: two windows may lie partly in it, at either end.
constexpr size_t kEdges = 4;
constexpr size_t kReferenceWindows = 3;
/// Windows of full speed that leave two beside each other, before the drop or after it: enough for the
/// reference.
constexpr double kFullSpeedWindows = 4;
/// A share of the fastest speed that stands for none at all, so that times stay finite.
constexpr double kStandstill = 1e-6;

/// The speed at which half of the time was spent in that or a slower one. `runs` are speeds with their share
/// of the slice's time.
double timeMedian(std::vector<std::pair<double, double>> runs) {
  std::sort(runs.begin(), runs.end());
  double all = 0;
  for (const auto& [speed, time] : runs) all += time;
  double slower = 0;
  for (const auto& [speed, time] : runs) {
    slower += time;
    if (slower >= all / 2) return speed;
  }
  return runs.back().first;
}

size_t sliceCount(size_t runs) {
  return std::clamp<size_t>(runs / kRunsPerSlice, 1, kMostSlices);
}

/// Runs of equal work as levels over slices of equal time.
std::vector<double> slicesOf(const std::vector<double>& speeds) {
  const size_t count = sliceCount(speeds.size());
  double total = 0;
  for (const double speed : speeds) total += 1 / speed;
  std::vector<double> levels;
  double begin = 0;  // of the current run
  size_t run = 0;
  for (size_t slice = 0; slice < count; ++slice) {
    const double from = total * static_cast<double>(slice) / static_cast<double>(count);
    const double to = total * static_cast<double>(slice + 1) / static_cast<double>(count);
    std::vector<std::pair<double, double>> inside;
    while (run < speeds.size() && begin < to) {
      const double end = begin + 1 / speeds[run];
      const double time = std::min(end, to) - std::max(begin, from);
      if (time > 0) inside.emplace_back(speeds[run], time);
      if (end > to) break;  // the rest of this run lies in the next slice
      begin = end;
      ++run;
    }
    // Rounding may leave nothing of the last run for the last slice.
    levels.push_back(inside.empty() ? speeds.back() : timeMedian(std::move(inside)));
  }
  return levels;
}

/// The best level that lasted: one high window alone does not set it.
double referenceOf(const std::vector<double>& levels) {
  if (levels.size() < kReferenceWindows) return *std::max_element(levels.begin(), levels.end());
  double best = 0;
  for (size_t i = 0; i + kReferenceWindows <= levels.size(); ++i) {
    const auto first = levels.begin() + static_cast<std::ptrdiff_t>(i);
    best = std::max(best, medianOf({first, first + kReferenceWindows}));
  }
  return best;
}

/// What |x| of a standard normal x stays below with this probability.
double halfNormalQuantile(double probability) {
  double low = 0, high = 10;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (std::erf(middle / std::sqrt(2.0)) < probability ? low : high) = middle;
  }
  return high;
}

/// Standard deviation of one level as a share of the reference. By the middle difference of neighbours, those
/// that the edges of a drop may have raised left out, so that neither a drop nor a slow drift counts as
/// noise.
double sigmaOf(const std::vector<double>& levels, double reference) {
  std::vector<double> differences;
  for (size_t i = 1; i < levels.size(); ++i) differences.push_back(std::fabs(levels[i] - levels[i - 1]));
  std::sort(differences.begin(), differences.end());
  const size_t count = differences.size();
  const size_t place = count > kEdges ? (count - kEdges) / 2 : count / 2;
  const double probability = (static_cast<double>(place) + 0.5) / static_cast<double>(count);
  return differences[place] / halfNormalQuantile(probability) / std::sqrt(2.0) / reference;
}

double noiseOf(double sigma, double windows) {
  return std::min(kMostNoise, kNoiseSigmas * sigma / std::sqrt(windows));
}

struct Found {
  size_t begin = 0;
  size_t end = 0;
  double mean = 0;
  double noise = 0;
  double excess = -1e300;  ///< loss beyond noise
};

/// All lengths for few windows; for many, lengths that grow by a quarter.
Found worstOf(const std::vector<double>& levels, double reference) {
  // Without enough neighbours there is no noise to estimate: then the most is assumed.
  const bool known = levels.size() >= kFewestSlices;
  const double sigma = known ? sigmaOf(levels, reference) : kMostNoise;
  std::vector<double> sums(levels.size() + 1, 0);
  std::partial_sum(levels.begin(), levels.end(), sums.begin() + 1);
  Found worst;
  for (size_t length = 1; length <= levels.size(); length += std::max<size_t>(1, length / 4)) {
    const double noise = known ? noiseOf(sigma, static_cast<double>(length)) : kMostNoise;
    for (size_t i = 0; i + length <= levels.size(); ++i) {
      const double mean = (sums[i + length] - sums[i]) / static_cast<double>(length);
      const double excess = 1 - mean / reference - noise;
      if (excess > worst.excess) worst = {i, i + length, mean, noise, excess};
    }
  }
  return worst;
}

/// Takes in the neighbours that belong to the same drop: those that lost at least half as much.
void widen(Found& found, const std::vector<double>& levels, double reference) {
  const double half = (found.mean + reference) / 2;
  while (found.begin > 0 && levels[found.begin - 1] <= half) --found.begin;
  while (found.end < levels.size() && levels[found.end] <= half) ++found.end;
}

}  // namespace

std::optional<WorstStretch> worstStretch(const std::vector<double>& samples, Series series,
                                         Direction direction, double window) {
  if (series == Series::kNone || direction == Direction::kNone || samples.empty()) return {};
  const bool lower = direction == Direction::kLower;
  std::vector<double> speeds;
  for (const double sample : samples) {
    speeds.push_back(lower ? 1 / sample : sample);
    if (!(speeds.back() >= 0) || !std::isfinite(speeds.back())) return {};
  }
  const double fastest = *std::max_element(speeds.begin(), speeds.end());
  if (!(fastest > 0)) return {};
  for (double& speed : speeds) speed = std::max(speed, fastest * kStandstill);
  const std::vector<double> levels = series == Series::kRuns ? slicesOf(speeds) : std::move(speeds);
  const double reference = referenceOf(levels);
  Found found = worstOf(levels, reference);
  WorstStretch worst;
  worst.reference = lower ? 1 / reference : reference;
  worst.level = lower ? 1 / found.mean : found.mean;
  worst.loss = 1 - found.mean / reference;
  worst.noise = found.noise;
  widen(found, levels, reference);
  worst.windows = levels.size();
  worst.inSeconds = series == Series::kWindows && window > 0;
  const double unit = worst.inSeconds ? window : 1 / static_cast<double>(levels.size());
  worst.begin = unit * static_cast<double>(found.begin);
  worst.end = unit * static_cast<double>(found.end);
  return worst;
}

bool enoughForDrop(size_t samples, Series series) {
  if (series == Series::kWindows) return samples >= kFewestWindows;
  return series == Series::kRuns && samples >= kFewestSlices * kRunsPerSlice;
}

double sustainedLevel(const WorstStretch& stretch, Direction direction) {
  const double share = 1 - std::max(0.0, stretch.leastDrop());
  return direction == Direction::kLower ? stretch.reference / share : stretch.reference * share;
}

std::string spanText(const WorstStretch& stretch) {
  const char* unit = stretch.inSeconds ? "s" : "ratio";
  return fmt::format("from {} to {}{}", formatQuantity(stretch.begin, unit, 3),
                     formatQuantity(stretch.end, unit, 3), stretch.inSeconds ? "" : " of its time");
}

namespace {

/// Share of the best-placed stretch of `length` windows that a drop of `seconds` covers, at its worst
/// alignment.
double coverage(double seconds, double window, double length) {
  if (seconds >= (length + 1) * window) return 1;
  if (seconds <= (length - 1) * window) return seconds / (length * window);
  return (seconds + (length - 1) * window) / 2 / (length * window);
}

}  // namespace

double detectableDrop(const SampledTime& sampled, double seconds) {
  const double unknown = 2;  // no drop is certain to be found
  if (sampled.series == Series::kNone || !(sampled.total > 0) || !(seconds > 0)) return unknown;
  if (sampled.series == Series::kRuns) {
    // At a standstill only the rest of the time holds runs.
    const double left = static_cast<double>(sampled.runs) * std::max(0.0, 1 - seconds / sampled.total);
    const auto slices = static_cast<double>(sliceCount(static_cast<size_t>(left)));
    const double slice = sampled.total / slices;
    if (slices < kFewestSlices || seconds <= slice || seconds > sampled.total - kFullSpeedWindows * slice)
      return unknown;
    return sampled.tolerance + noiseOf(sampled.sigma, 1) + kCertainSigmas * sampled.sigma;
  }
  const double windows = std::floor(sampled.total / sampled.window);
  if (windows < kReferenceWindows || seconds > sampled.total - kFullSpeedWindows * sampled.window)
    return unknown;
  double best = unknown;
  for (double length = 1; length < windows; length += std::max(1.0, std::floor(length / 4))) {
    const double noise = windows < kFewWindows ? kMostNoise : noiseOf(sampled.sigma, length);
    const double needed = sampled.tolerance + noise + kCertainSigmas * sampled.sigma / std::sqrt(length);
    best = std::min(best, needed / coverage(seconds, sampled.window, length));
  }
  return best;
}

}  // namespace muster
