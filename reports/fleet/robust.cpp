// SPDX-License-Identifier: Apache-2.0
// See robust.h.
#include "reports/fleet/robust.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace muster::fleet {
namespace {

constexpr double kHuber = 1.5;  ///< 96% efficient for normal values
constexpr int kRounds = 8;
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

}  // namespace

double medianOf(std::span<const double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const Neighbors middle = nthOf(values, values.size() / 2);
  return values.size() % 2 == 1 ? middle.at : (middle.before + middle.at) / 2;
}

double madOf(std::span<const double> values, double center) {
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) distances.push_back(std::abs(value - center));
  return medianOf(distances);
}

double huberMean(std::span<const double> values, double sigma, double prior) {
  double center = medianOf(values);
  const auto n = static_cast<double>(values.size());
  if (values.empty()) return 0;
  if (sigma <= 0) return center * n / (n + prior);
  center *= n / (n + prior);
  for (int round = 0; round < kRounds; ++round) {
    double weights = prior;
    double sum = 0;
    for (const double value : values) {
      const double far = std::abs(value - center) / sigma;
      const double weight = far <= kHuber ? 1 : kHuber / far;
      weights += weight;
      sum += weight * value;
    }
    const double next = sum / weights;
    const bool settled = std::abs(next - center) < 1e-4 * sigma;
    center = next;
    if (settled) break;
  }
  return center;
}

double normalTail(double z) {
  return std::erfc(z / std::numbers::sqrt2) / 2;
}

double normalFromTail(double p) {
  double low = -40;
  double high = 40;
  for (int i = 0; i < 80; ++i) {
    const double middle = (low + high) / 2;
    (normalTail(middle) > p ? low : high) = middle;
  }
  return (low + high) / 2;
}

double normalFromStudent(double t, double freedom) {
  const double z = (8 * freedom + 1) / (8 * freedom + 3) * std::sqrt(freedom * std::log1p(t * t / freedom));
  return t < 0 ? -z : z;
}

}  // namespace muster::fleet
