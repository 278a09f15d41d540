// SPDX-License-Identifier: Apache-2.0
// Models of a series that changed: a step, or a slope. Both in O(n log n), so a series may have 100,000 runs.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

namespace muster::history {

enum class ChangeKind { kStep, kSlope };

/// A model of a series: its levels and what it leaves unexplained.
struct ChangeModel {
  ChangeKind kind = ChangeKind::kStep;
  size_t at = 0;                                              ///< step: the first run at the new level
  double before = 0;                                          ///< level; slope: at the first run
  double after = 0;                                           ///< level; slope: at the last run
  double perDay = 0;                                          ///< slope: change of the share per day
  double sigmas = 0;                                          ///< size of the change in standard errors
  double residual = std::numeric_limits<double>::infinity();  ///< sum of absolute residuals, base unit
};

/// A series and its noise.
struct NoisyValues {
  const std::vector<double>& days;    ///< ascending, from the first run
  const std::vector<double>& values;  ///< base unit, finite, not empty
  double level = 1;                   ///< absolute median of the values
  double sigma = 0;                   ///< noise, share of the level; above 0
};

/// The split whose two medians leave the smallest absolute residuals.
ChangeModel bestStep(const NoisyValues& series);

/// Theil-Sen: the median of the slopes of all pairs. No pair at different times: its residual is infinite.
ChangeModel bestSlope(const NoisyValues& series);

/// False only if bestSlope() does not exceed `sigmas`; needs no slope, so it is quick.
bool slopeMayExceed(const NoisyValues& series, double sigmas);

/// The median; NaN of nothing.

}  // namespace muster::history
