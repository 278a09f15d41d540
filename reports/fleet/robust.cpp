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

}  // namespace

double medianOf(std::vector<double>& values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double madOf(std::span<const double> values, double center) {
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) distances.push_back(std::abs(value - center));
  return medianOf(distances);
}

double huberMean(std::span<const double> values, double sigma, double prior) {
  std::vector<double> sorted(values.begin(), values.end());
  double center = medianOf(sorted);
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
