// SPDX-License-Identifier: Apache-2.0
// Tests a series for steps and slopes.
#include "reports/history/trend.h"
#include "runner/core/statistics.h"

#include <algorithm>
#include <cmath>

namespace muster::history {
namespace {

constexpr double kDay = 86400;

/// What readings of one part have in common.
struct PartKey {
  bool simulated = false;
  std::string_view serial, node, device;  ///< node and device only where there is no serial
  auto operator<=>(const PartKey&) const = default;
};

PartKey partOf(const Reading& reading, const std::set<std::string>& shared) {
  const std::string& serial = reading.device->serial;
  if (!serial.empty() && shared.count(serial) == 0) return {reading.run->simulated, serial, "", ""};
  return {reading.run->simulated, "", reading.run->node, reading.device->name};
}

std::vector<double> daysOf(const Series& series) {
  std::vector<double> days;
  days.reserve(series.runs.size());
  for (const Run* run : series.runs) days.push_back((run->started - series.runs.front()->started) / kDay);
  return days;
}

bool comesFirst(const Change& a, const Change& b) {
  return a.worse != b.worse ? a.worse : a.sigmas > b.sigmas;
}

}  // namespace

bool isWorse(Direction direction, double change) {
  if (direction == Direction::kHigher) return change < 0;
  return direction == Direction::kLower && change > 0;
}

Noises noisesOf(const std::vector<Series>& figure, double floor) {
  std::map<std::pair<std::string, bool>, std::vector<double>> found;
  for (const Series& series : figure) {
    const double level = std::fabs(medianOf(series.values));
    std::vector<double>* differences = nullptr;
    for (size_t i = 1; i < series.values.size() && level > 0; ++i) {
      if (!series.stayed(i)) {
        differences = nullptr;
        continue;
      }
      if (differences == nullptr) differences = &found[{series.runs[i]->node, series.simulated}];
      differences->push_back(std::fabs(series.values[i] - series.values[i - 1]) / level);
    }
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
  const std::string* node = nullptr;
  for (const Run* run : series.runs) {
    if (node != nullptr && *node == run->node) continue;
    node = &run->node;
    const auto at = known.find({run->node, series.simulated});
    if (at != known.end() && at->second.differences >= least && at->second.sigma > noisiest.sigma)
      noisiest = at->second;
  }
  return noisiest;
}

std::vector<Series> seriesOf(const FigureName& figure, const std::vector<Reading>& readings,
                             const std::set<std::string>& shared) {
  std::map<PartKey, Series> found;
  for (const Reading& reading : readings) {
    const PartKey part = partOf(reading, shared);
    Series& series = found[part];
    if (series.runs.empty()) {
      series.figure = &figure;
      series.serial = part.serial;
      series.simulated = part.simulated;
    }
    series.runs.push_back(reading.run);
    series.devices.push_back(reading.device);
    series.values.push_back(reading.value);
  }
  std::vector<Series> out;
  out.reserve(found.size());
  for (auto& [part, series] : found) out.push_back(std::move(series));
  return out;
}

double TrendFinder::limitFor(size_t differences) const {
  // Half of the differences' freedom: the median absolute difference uses them less well than a mean square.
  return studentQuantile(options_.falseAlarms / static_cast<double>(2 * comparisons_),
                         static_cast<double>(differences) / 2);
}

void TrendFinder::add(const std::vector<Series>& figure) {
  const Noises noises = noisesOf(figure, options_.noiseFloor);
  for (const Series& series : figure) {
    ++trends_.series;
    trends_.measured += series.simulated ? 0 : 1;
    const double level = std::fabs(medianOf(series.values));
    const Noise noise = noiseOf(series, noises, options_.leastDifferences);
    if (!(level > 0)) {
      ++trends_.zero;
      continue;
    }
    if (series.values.size() < options_.leastRuns || noise.differences == 0) {
      ++trends_.tooFew;
      continue;
    }
    comparisons_ += series.values.size();
    examine(series, level, noise.sigma, noise.differences);
  }
  if (trends_.changes.size() >= 2 * options_.mostChanges) shorten(options_.mostChanges);
}

/// Keeps what exceeds the limit of the comparisons so far; that of all is higher, and finish() applies it.
void TrendFinder::examine(const Series& series, double level, double sigma, size_t differences) {
  const std::vector<double> days = daysOf(series);
  const NoisyValues noisy{days, series.values, level, sigma};
  const double limit = limitFor(differences);
  const ChangeModel step = bestStep(noisy);
  if (!(step.sigmas > limit) && !slopeMayExceed(noisy, limit)) return;
  const ChangeModel slope = bestSlope(noisy);
  Change change;
  static_cast<ChangeModel&>(change) = slope.residual < step.residual ? slope : step;
  change.change = (change.after - change.before) / std::fabs(change.before);
  if (!(change.sigmas > limit) || !(std::fabs(change.change) >= options_.least)) return;
  change.noise = sigma;
  change.differences = differences;
  change.worse = isWorse(series.figure->direction, change.change);
  change.series = series;
  trends_.changes.push_back(std::move(change));
}

/// Lists the first `most`; of the others remains what finish() needs to count them.
void TrendFinder::shorten(size_t most) {
  std::stable_sort(trends_.changes.begin(), trends_.changes.end(), comesFirst);
  for (size_t i = most; i < trends_.changes.size(); ++i) {
    const Change& change = trends_.changes[i];
    unlisted_.push_back({change.sigmas, change.differences, change.worse, change.series.simulated});
  }
  if (trends_.changes.size() > most)
    trends_.changes.erase(trends_.changes.begin() + static_cast<long>(most), trends_.changes.end());
}

Trends TrendFinder::finish() {
  for (Change& change : trends_.changes) change.limit = limitFor(change.differences);
  std::erase_if(trends_.changes, [](const Change& change) { return !(change.sigmas > change.limit); });
  shorten(options_.mostChanges);
  const auto count = [&](bool worse, bool simulated) {
    trends_.worseMeasured += worse && !simulated ? 1 : 0;
    trends_.worseSimulated += worse && simulated ? 1 : 0;
  };
  for (const Change& change : trends_.changes) count(change.worse, change.series.simulated);
  for (const Unlisted& change : unlisted_) {
    if (!(change.sigmas > limitFor(change.differences))) continue;
    ++trends_.left;
    count(change.worse, change.simulated);
  }
  return std::move(trends_);
}

}  // namespace muster::history
