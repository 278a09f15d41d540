// SPDX-License-Identifier: Apache-2.0
// See trend.h.
#include "reports/history/trend.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

namespace muster::history {
namespace {

constexpr double kDay = 86400;
constexpr double kMadToSigma = 1.4826;    // of a normal distribution
constexpr double kMedianFactor = 1.2533;  // sqrt(pi/2): standard error of a median against that of a mean

/// The upper quantile of the normal distribution at tail probability `p` (Abramowitz and Stegun 26.2.23;
/// error below 4.5e-4).
double normalQuantile(double p) {
  const double t = std::sqrt(-2 * std::log(std::clamp(p, 1e-300, 0.5)));
  return t -
         (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
}

/// What figures must have in common to share one noise: they are of one node, run by run.
std::string noiseKey(const Series& s, const std::string& node) {
  return node + "\n" + s.stage + "\n" + s.caseId + "\n" + s.metric + "\n" + s.labels +
         (s.simulated ? "\nsim" : "");
}

/// Serials that two devices of one run have ("0", "N/A"): they name no part.
std::set<std::string> sharedSerials(const std::vector<Point>& points) {
  std::map<std::pair<int64_t, std::string>, std::string> places;
  std::set<std::string> shared;
  for (const Point& p : points)
    if (!p.serial.empty() && places.try_emplace({p.run.number, p.serial}, p.device).first->second != p.device)
      shared.insert(p.serial);
  return shared;
}

/// A model of a series: its levels and what it leaves unexplained.
struct Model {
  Change change;
  double residual = std::numeric_limits<double>::infinity();  ///< sum of absolute residuals, base unit
};

double residualAbout(const std::vector<double>& values, size_t begin, size_t end, double level) {
  double sum = 0;
  for (size_t i = begin; i < end; ++i) sum += std::fabs(values[i] - level);
  return sum;
}

/// The standard error of a median of n values of standard deviation 1.
double medianError(size_t n) {
  return (n < 3 ? 1.0 : kMedianFactor) / std::sqrt(static_cast<double>(n));
}

Model bestStep(const Series& series, const Noise& noise, double level) {
  Model best;
  const auto& values = series.values;
  for (size_t at = 1; at < values.size(); ++at) {
    const double before = medianOf({values.begin(), values.begin() + static_cast<long>(at)});
    const double after = medianOf({values.begin() + static_cast<long>(at), values.end()});
    const double residual =
        residualAbout(values, 0, at, before) + residualAbout(values, at, values.size(), after);
    if (residual >= best.residual) continue;
    const double error = std::hypot(medianError(at), medianError(values.size() - at)) * noise.sigma * level;
    best.residual = residual;
    best.change.kind = ChangeKind::kStep;
    best.change.at = at;
    best.change.before = before;
    best.change.after = after;
    best.change.sigmas = std::fabs(after - before) / error;
  }
  return best;
}

/// Theil-Sen: the median of the slopes of all pairs.
Model bestSlope(const Series& series, const Noise& noise, double level) {
  Model model;
  const auto& values = series.values;
  std::vector<double> times, slopes, offsets;
  for (const Run& run : series.runs) times.push_back((run.started - series.runs.front().started) / kDay);
  for (size_t i = 0; i < values.size(); ++i)
    for (size_t j = i + 1; j < values.size(); ++j)
      if (times[j] > times[i]) slopes.push_back((values[j] - values[i]) / (times[j] - times[i]));
  if (slopes.empty()) return model;
  const double slope = medianOf(slopes);
  double mean = 0, square = 0;
  for (const double t : times) mean += t / static_cast<double>(times.size());
  for (size_t i = 0; i < values.size(); ++i) {
    square += (times[i] - mean) * (times[i] - mean);
    offsets.push_back(values[i] - slope * times[i]);
  }
  const double offset = medianOf(offsets);
  model.residual = 0;
  for (size_t i = 0; i < values.size(); ++i)
    model.residual += std::fabs(values[i] - offset - slope * times[i]);
  model.change.kind = ChangeKind::kSlope;
  model.change.before = offset;
  model.change.after = offset + slope * times.back();
  model.change.perDay = slope / level;
  model.change.sigmas = std::fabs(slope) * std::sqrt(square) / (noise.sigma * level);
  return model;
}

}  // namespace

bool isWorse(Direction direction, double change) {
  if (direction == Direction::kHigher) return change < 0;
  return direction == Direction::kLower && change > 0;
}

double studentQuantile(double p, double freedom) {
  const double z = normalQuantile(p);
  return std::sqrt(freedom * std::expm1(z * z / freedom * (1 - 1 / (4 * std::max(freedom, 1.0)))));
}

Noises noisesOf(const std::vector<Series>& all, double floor) {
  std::map<std::string, std::vector<double>> found;
  for (const Series& series : all) {
    const double level = std::fabs(medianOf(series.values));
    for (size_t i = 1; i < series.values.size() && level > 0; ++i)
      if (series.stayed(i))
        found[noiseKey(series, series.runs[i].node)].push_back(
            std::fabs(series.values[i] - series.values[i - 1]) / level);
  }
  Noises out;
  for (auto& [key, values] : found) {
    const size_t n = values.size();
    out[key] = {std::max(kMadToSigma * medianOf(std::move(values)) / std::sqrt(2.0), floor), n};
  }
  return out;
}

Noise noiseOf(const Series& series, const Noises& known, size_t least) {
  Noise noisiest;
  for (const Run& run : series.runs) {
    const auto at = known.find(noiseKey(series, run.node));
    if (at != known.end() && at->second.differences >= least && at->second.sigma > noisiest.sigma)
      noisiest = at->second;
  }
  return noisiest;
}

double medianOf(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = values.begin() + static_cast<long>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

std::vector<Series> seriesOf(const std::vector<Point>& points) {
  using Key = std::tuple<std::string, std::string, std::string, std::string, std::string, std::string, bool>;
  const std::set<std::string> shared = sharedSerials(points);
  std::map<Key, Series> found;
  for (const Point& p : points) {
    const bool known = !p.serial.empty() && shared.count(p.serial) == 0;
    const std::string part = known ? p.serial : "@" + p.run.node + "\n" + p.device;
    Series& s = found[{part, p.stage, p.caseId, p.metric, p.labels, p.unit, p.run.simulated}];
    s.node = p.run.node;
    s.device = p.device;
    s.serial = known ? p.serial : "";
    s.stage = p.stage;
    s.caseId = p.caseId;
    s.metric = p.metric;
    s.unit = p.unit;
    s.labels = p.labels;
    s.direction = p.direction;
    s.simulated = p.run.simulated;
    s.runs.push_back(p.run);
    s.devices.push_back(p.device);
    s.values.push_back(p.median);
  }
  std::vector<Series> out;
  out.reserve(found.size());
  for (auto& [key, series] : found) out.push_back(std::move(series));
  return out;
}

Trends findTrends(const std::vector<Series>& all, const TrendOptions& options) {
  Trends trends;
  const auto noise = noisesOf(all, options.noiseFloor);
  std::vector<const Series*> able;
  size_t comparisons = 0;
  for (const Series& series : all) {
    ++trends.series;
    if (!(std::fabs(medianOf(series.values)) > 0) || series.values.size() < options.leastRuns ||
        noiseOf(series, noise, options.leastDifferences).differences == 0) {
      ++trends.tooFew;
      continue;
    }
    able.push_back(&series);
    comparisons += series.values.size();  // each split, and the slope
  }
  for (const Series* series : able) {
    const Noise own = noiseOf(*series, noise, options.leastDifferences);
    const double level = std::fabs(medianOf(series->values));
    const Model step = bestStep(*series, own, level), slope = bestSlope(*series, own, level);
    Change change = slope.residual < step.residual ? slope.change : step.change;
    change.change = (change.after - change.before) / std::fabs(change.before);
    // Half of the differences' freedom: the median absolute difference uses them less well than a mean
    // square.
    change.limit = studentQuantile(options.falseAlarms / static_cast<double>(2 * comparisons),
                                   static_cast<double>(own.differences) / 2);
    if (!(change.sigmas > change.limit) || !(std::fabs(change.change) >= options.least)) continue;
    change.noise = own.sigma;
    change.differences = own.differences;
    change.worse = isWorse(series->direction, change.change);
    change.series = *series;
    trends.changes.push_back(std::move(change));
  }
  std::stable_sort(trends.changes.begin(), trends.changes.end(), [](const Change& a, const Change& b) {
    return a.worse != b.worse ? a.worse : a.sigmas > b.sigmas;
  });
  return trends;
}

}  // namespace muster::history
