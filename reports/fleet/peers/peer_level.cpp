// SPDX-License-Identifier: Apache-2.0
// Scores each unit per metric and per class of metrics.
#include "reports/fleet/peers/peer_level.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "runner/core/statistics.h"

namespace muster::fleet {
namespace {

/// What benchmarks' noise is taken for where the group is too small to tell.
constexpr double kAssumedSkew = 0.5;
/// A class counts no metric for more than this, so that one metric alone cannot name it.
constexpr double kMostInClass = 4;
/// Sums of independent deviations vary by 1; negative correlations are not relied on for more than this.
constexpr double kLeastSumScale = 0.9;
/// Values of which a standard deviation is as certain as a spread by medians.
constexpr double kShareOfFreedom = 0.4;
constexpr double kLeastFloor = 1e-12;
const char* const kAllMetrics = "all";

std::vector<double> presentOf(std::span<const float> values) {
  std::vector<double> present;
  present.reserve(values.size());
  for (const float value : values)
    if (std::isfinite(value)) present.push_back(value);
  return present;
}

double sigmaOf(const std::vector<double>& values) {
  return values.empty() ? 0 : kMadToSigma * madOf(values, 0);
}

std::vector<double> mirrored(std::vector<double> values) {
  for (double& value : values) value = -value;
  return values;
}

/// One metric on its way to what is usual.
struct Learning {
  double sigma = 0;
  TailCounts bad, good;
};

TailModel tailOf(const TailCounts& counts, double sigma, double prior, double floor, double freedom) {
  const TailFit fit = shrunkFit(counts, prior);
  return {std::max(fit.scale * sigma, floor), fit.skew, kShareOfFreedom * freedom};
}

}  // namespace

LevelTests::LevelTests(const std::vector<LevelMetric>& metrics) {
  learnMetrics(metrics);
  nameClasses(metrics);
  learnClasses(metrics);
}

void LevelTests::learnMetrics(const std::vector<LevelMetric>& metrics) {
  std::vector<Learning> learning(metrics.size());
  TailCounts all;
  for (size_t m = 0; m < metrics.size(); ++m) {
    const std::vector<double> present = presentOf(metrics[m].deviations);
    metricTests_ += static_cast<double>(present.size()) * (metrics[m].bothSides ? 2 : 1);
    Learning& one = learning[m];
    one.sigma = sigmaOf(present);
    // Identical values and no floor: any difference at all is infinitely odd, so take the least there is.
    const double floor = std::max(metrics[m].floor, kLeastFloor);
    const bool floored = one.sigma <= floor;
    one.sigma = std::max(one.sigma, floor);
    if (floored) continue;  // the shape of what is below the floor says nothing
    one.bad = TailCounts(present, one.sigma);
    if (metrics[m].bothSides) one.good = TailCounts(mirrored(present), one.sigma);
    all.add(one.bad);
  }
  const double common = shrunkFit(all, kAssumedSkew).skew;
  for (size_t m = 0; m < metrics.size(); ++m) {
    const LevelMetric& metric = metrics[m];
    const Learning& one = learning[m];
    const double floor = std::max(metric.floor, kLeastFloor);
    usual_.push_back({tailOf(one.bad, one.sigma, common, floor, metric.freedom),
                      tailOf(one.good, one.sigma, common, floor, metric.freedom), metric.bothSides});
  }
}

void LevelTests::nameClasses(const std::vector<LevelMetric>& metrics) {
  std::map<std::string, std::vector<size_t>> byName;
  std::vector<size_t> all;
  for (size_t m = 0; m < metrics.size(); ++m) {
    if (metrics[m].metricClass.empty() || metrics[m].bothSides) continue;
    byName[metrics[m].metricClass].push_back(m);
    all.push_back(m);
  }
  const bool several = byName.size() > 1;
  for (auto& [name, members] : byName) {
    if (members.size() < 2) continue;
    names_.push_back(name);
    members_.push_back(std::move(members));
  }
  if (!several || all.size() < 2) return;
  names_.emplace_back(kAllMetrics);
  members_.push_back(std::move(all));
}

void LevelTests::learnClasses(const std::vector<LevelMetric>& metrics) {
  const size_t units = metrics.empty() ? 0 : metrics.front().deviations.size();
  std::vector<double> row(metrics.size());
  for (size_t c = 0; c < members_.size(); ++c) {
    std::vector<double> sums;
    for (size_t unit = 0; unit < units; ++unit) {
      for (const size_t m : members_[c]) row[m] = metrics[m].deviations[unit];
      if (const Sum sum = sumOf(c, row); sum.n > 1) sums.push_back(sum.value);
    }
    classTests_ += static_cast<double>(sums.size());
    double cubes = 0;
    double squares = 0;
    double freedom = 0;
    for (const size_t m : members_[c]) {
      const double weight = 1 / scaleOf(m);
      cubes += weight * weight * weight * skewOf(m);
      squares += weight * weight;
      freedom += metrics[m].freedom;
    }
    const double independent = cubes / std::pow(squares, 1.5);
    const double sigma = sigmaOf(sums);
    const TailCounts counts = sigma > kLeastSumScale ? TailCounts(sums, sigma) : TailCounts();
    classUsual_.push_back(
        tailOf(counts, std::max(sigma, kLeastSumScale), independent, kLeastSumScale, freedom));
  }
}

LevelTests::Sum LevelTests::sumOf(size_t classNumber, std::span<const double> row) const {
  Sum sum;
  double weights = 0;
  for (const size_t m : members_[classNumber]) {
    if (!std::isfinite(row[m])) continue;
    const double scale = scaleOf(m);
    sum.value += std::clamp(row[m] / scale, -kMostInClass, kMostInClass) / scale;
    sum.off += row[m] / (scale * scale);
    weights += 1 / (scale * scale);
    ++sum.n;
  }
  if (sum.n == 0) return sum;
  sum.value /= std::sqrt(weights);
  sum.off /= weights;
  return sum;
}

double LevelTests::deviationOf(size_t metric, double z) const {
  const TailModel& tail = usual_[metric].bad;
  double low = 0;
  double high = tail.scale();
  while (tail.zOf(high) < z && high < 1e9 * tail.scale()) high *= 2;
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    (tail.zOf(middle) < z ? low : high) = middle;
  }
  return high;
}

UnitTests LevelTests::test(std::span<const double> row) const {
  UnitTests tests;
  for (size_t m = 0; m < usual_.size(); ++m) {
    double z = kNaN;
    if (std::isfinite(row[m])) {
      z = usual_[m].bad.zOf(row[m]);
      if (usual_[m].bothSides) z = std::max(z, usual_[m].good.zOf(-row[m]));
    }
    tests.metricZ.push_back(z);
  }
  for (size_t c = 0; c < members_.size(); ++c) {
    const Sum sum = sumOf(c, row);
    tests.classZ.push_back(sum.n > 1 ? classUsual_[c].zOf(sum.value) : kNaN);
    tests.classOff.push_back(sum.off);
  }
  return tests;
}

Judged judge(const UnitTests& tests, const LevelTests& level, const Shares& shares) {
  Judged judged;
  for (const double z : tests.metricZ) {
    const double expected = std::isfinite(z) ? normalTail(z) * level.metricTests() / shares.metrics : 1e300;
    judged.metricFalseNames.push_back(expected);
    if (expected >= judged.falseNames) continue;
    judged.falseNames = expected;
    judged.z = z;
  }
  for (size_t c = 0; c < tests.classZ.size(); ++c) {
    const double z = tests.classZ[c];
    if (!std::isfinite(z)) continue;
    const double expected = normalTail(z) * level.classTests() / shares.classes;
    if (expected >= judged.classFalseNames) continue;
    judged.classFalseNames = expected;
    judged.strongestClass = c;
    if (expected >= judged.falseNames) continue;
    judged.falseNames = expected;
    judged.z = z;
  }
  return judged;
}

}  // namespace muster::fleet
