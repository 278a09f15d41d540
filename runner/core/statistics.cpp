// SPDX-License-Identifier: Apache-2.0
// The median of many values without branches; quantiles by Newton's method.
#include "runner/core/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <vector>

namespace muster {
namespace {

constexpr size_t kFew = 8;
constexpr int kMostSplits = 64;  ///< far beyond what values need that were not made to need more

double middleOf(double a, double b, double c) {
  return std::max(std::min(a, b), std::min(std::max(a, b), c));
}

/// Neighbors in the order of the values.
struct Neighbors {
  double before;  ///< of the rank before; -infinity: there is none
  double at;
};

/// The value of rank `rank`, from 0, and the one before. Like std::nth_element, without a branch for each
/// value: which way it goes cannot be foretold. Values in the half that has the rank are split again.
Neighbors nthOf(std::span<const double> values, size_t rank) {
  thread_local std::vector<double> below, above;
  double before = -std::numeric_limits<double>::infinity();
  below.resize(std::max(below.size(), values.size()));
  above.resize(std::max(above.size(), values.size()));
  for (int split = 0; values.size() > kFew && split < kMostSplits; ++split) {
    const double pivot = middleOf(values.front(), values[values.size() / 2], values.back());
    size_t less = 0, more = 0;
    double* const low = below.data();
    double* const high = above.data();
    for (const double value : values) {
      low[less] = value;
      high[more] = value;
      less += value < pivot ? 1 : 0;
      more += value > pivot ? 1 : 0;
    }
    const size_t notMore = values.size() - more;
    if (rank > less && rank < notMore) return {pivot, pivot};
    if (rank == less) return {less > 0 ? *std::max_element(low, low + less) : before, pivot};
    const bool down = rank < less;
    rank -= down ? 0 : notMore;
    if (!down) before = pivot;
    values = std::span(down ? below : above).first(down ? less : more);
  }
  thread_local std::vector<double> rest;
  rest.assign(values.begin(), values.end());
  std::sort(rest.begin(), rest.end());
  return {rank > 0 ? rest[rank - 1] : before, rest[rank]};
}

/// What Wallace's approximation multiplies.
double wallace(double freedom) {
  return (8 * freedom + 1) / (8 * freedom + 3);
}

}  // namespace

double medianOf(std::span<const double> values) {
  bool finite = true;
  for (const double value : values) finite &= std::isfinite(value);
  if (values.empty() || !finite) return kNaN;
  const Neighbors middle = nthOf(values, values.size() / 2);
  return values.size() % 2 == 1 ? middle.at : std::midpoint(middle.before, middle.at);
}

double madOf(std::span<const double> values, double center) {
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) distances.push_back(std::abs(value - center));
  return medianOf(distances);
}

double normalTail(double z) {
  return std::erfc(z / std::numbers::sqrt2) / 2;
}

/// Abramowitz and Stegun 26.2.23 (good to 4.5e-4), then Newton's steps on the logarithm of the tail's own
/// share, so that far tails stay exact.
double normalQuantile(double p) {
  const bool upper = p > 0.5;
  const double tail = upper ? 1 - p : p;
  const double t = std::sqrt(-2 * std::log(tail));
  double z =
      (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) - t;
  constexpr int kMostSteps = 10;
  for (int i = 0; i < kMostSteps; ++i) {
    const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
    const double share = normalTail(-z);
    const double step = std::log(share / tail) * share / density;
    z -= step;
    if (std::fabs(step) < 1e-10) break;
  }
  return upper ? -z : z;
}

double normalFromStudent(double t, double freedom) {
  const double z = wallace(freedom) * std::sqrt(freedom * std::log1p(t * t / freedom));
  return t < 0 ? -z : z;
}

double studentQuantile(double p, double freedom) {
  const double z = normalQuantile(std::clamp(p, 1e-300, 0.5)) / wallace(freedom);
  return std::sqrt(freedom * std::expm1(z * z / freedom));
}

}  // namespace muster
