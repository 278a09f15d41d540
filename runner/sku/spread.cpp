// SPDX-License-Identifier: Apache-2.0
// Fits centre, sigma and skew, and computes tolerance limits.
#include "runner/sku/spread.h"
#include "runner/core/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>

namespace muster {
namespace {

constexpr double kMiddleWindow = 1;
constexpr double kMostWindow = 2;
/// That of an exponential tail: figures that lean more are of more than one kind.
constexpr double kMostSkew = 1.0 / 3;

/// Variances of the fitted parameters, times n and over sigma^2, for normal figures: found by simulating the
/// fit (tests/runner/sku/spread_test.cpp repeats it). Moments would have 1, 0.5 and 1/6.
constexpr double kCentreVariance = 1.2;
constexpr double kSigmaVariance = 0.65;
constexpr double kSkewVariance = 0.27;

using Row = std::array<double, 4>;

/// Solves three equations by Gauss's elimination with pivots; the last column is the right side.
std::array<double, 3> solve(std::array<Row, 3> rows, size_t unknowns) {
  for (size_t i = 0; i < unknowns; ++i) {
    size_t best = i;
    for (size_t j = i + 1; j < unknowns; ++j)
      if (std::fabs(rows[j][i]) > std::fabs(rows[best][i])) best = j;
    std::swap(rows[i], rows[best]);
    for (size_t j = i + 1; j < unknowns; ++j) {
      const double factor = rows[j][i] / rows[i][i];
      for (size_t k = i; k < 4; ++k) rows[j][k] -= factor * rows[i][k];
    }
  }
  std::array<double, 3> x{};
  for (size_t i = unknowns; i-- > 0;) {
    double rest = rows[i][3];
    for (size_t j = i + 1; j < unknowns; ++j) rest -= rows[i][j] * x[j];
    x[i] = rest / rows[i][i];
  }
  return x;
}

/// Coefficients of 1, z and z^2 - 1; the last only if `terms` is 3.
std::array<double, 3> regress(const std::vector<double>& sorted, double window, size_t terms) {
  std::array<Row, 3> rows{};
  const auto n = static_cast<double>(sorted.size());
  for (size_t i = 0; i < sorted.size(); ++i) {
    // Blom's plotting positions.
    const double z = normalQuantile((static_cast<double>(i) + 1 - 0.375) / (n + 0.25));
    if (std::fabs(z) > window) continue;
    const Row basis = {1, z, z * z - 1, sorted[i]};
    for (size_t a = 0; a < terms; ++a) {
      for (size_t b = 0; b < terms; ++b) rows[a][b] += basis[a] * basis[b];
      rows[a][3] += basis[a] * basis[3];
    }
  }
  return solve(rows, terms);
}

}  // namespace

double Spread::reach(double tail) const {
  const double z = -normalQuantile(tail);
  return z + skew * std::max(0.0, z * z - 1);
}

Spread fitSpread(std::vector<double> values, FitWindow window, double floor) {
  std::sort(values.begin(), values.end());
  const bool most = window == FitWindow::kMost;
  const auto with = regress(values, most ? kMostWindow : kMiddleWindow, most ? 3 : 2);
  Spread spread{with[0], std::max(with[1], floor), 0};
  if (!most) return spread;
  if (with[2] < 0 && with[1] > floor) {
    spread.skew = std::min(-with[2] / spread.sigma, kMostSkew);
    return spread;
  }
  // A tail that is shorter on the bad side tightens no limit: few figures cannot prove it.
  const auto without = regress(values, kMostWindow, 2);
  return {without[0], std::max(without[1], floor), 0};
}

Clustering clusteringOf(const std::vector<double>& values, const std::vector<int>& groups) {
  struct Sum {
    double n = 0;
    double total = 0;
  };
  std::map<int, Sum> sums;
  double total = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    ++sums[groups[i]].n;
    sums[groups[i]].total += values[i];
    total += values[i];
  }
  const auto n = static_cast<double>(values.size());
  const auto k = static_cast<double>(sums.size());
  Clustering clustering{0, k > 0 ? n / k : 1};
  if (k < 2 || n <= k) return clustering;
  double between = 0;
  double within = 0;
  for (const auto& [group, sum] : sums) between += sum.n * std::pow(sum.total / sum.n - total / n, 2);
  for (size_t i = 0; i < values.size(); ++i) {
    const Sum& sum = sums[groups[i]];
    within += std::pow(values[i] - sum.total / sum.n, 2);
  }
  between /= k - 1;
  within /= n - k;
  const double common = (between - within) / (between + (clustering.size - 1) * within);
  clustering.common = std::isfinite(common) ? std::clamp(common, 0.0, 1.0) : 0;
  return clustering;
}

double skewError(double n, const Clustering& clustering) {
  const double effect = 1 + std::max(0.0, clustering.size - 1) * clustering.common * clustering.common;
  return std::sqrt(kSkewVariance * effect / n);
}

double toleranceFactor(const Spread& spread, double tail, double confidence, double n,
                       const Clustering& clustering) {
  const double z = -normalQuantile(tail);
  // What figures of one node have in common counts once, not once per figure: Kish's design effect for the
  // centre; of a variance the correlation enters squared.
  const double extra = std::max(0.0, clustering.size - 1);
  const double centreEffect = 1 + extra * clustering.common;
  const double shapeEffect = 1 + extra * clustering.common * clustering.common;
  const double shape = kSigmaVariance * z * z + kSkewVariance * std::pow(z * z - 1, 2);
  const double variance = (kCentreVariance * centreEffect + shape * shapeEffect) / n;
  return spread.reach(tail) + normalQuantile(confidence) * std::sqrt(variance);
}

}  // namespace muster
