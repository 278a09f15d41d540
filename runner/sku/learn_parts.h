// SPDX-License-Identifier: Apache-2.0
// What the steps of learning share.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "runner/core/statistics.h"
#include "runner/sku/learn.h"
#include "runner/sku/spread.h"

namespace muster {

/// Larger is better.
inline double signedFigure(const LearnGroup& group, double value) {
  return group.direction == Direction::kLower ? -value : value;
}

/// Healthy machines repeat a figure within a thousandth at best: a fleet that agrees better than that, by
/// chance or by rounding, must not get a limit that the next run misses.
inline constexpr double kSpreadFloor = 0.001;

/// The least sigma of figures whose median has this size.
inline double spreadFloor(const std::vector<double>& values) {
  return std::max(1e-300, std::fabs(medianOf(values)) * kSpreadFloor);
}

}  // namespace muster
