// SPDX-License-Identifier: Apache-2.0
// Huber's mean by reweighting.
#include "reports/fleet/peers/robust.h"
#include "runner/core/statistics.h"

#include <algorithm>
#include <cmath>

namespace muster::fleet {
namespace {

constexpr double kHuber = 1.5;  ///< 96% efficient for normal values
constexpr int kRounds = 8;

}  // namespace

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

}  // namespace muster::fleet
