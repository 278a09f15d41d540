// SPDX-License-Identifier: Apache-2.0
// Medians, spreads and tails: one convention for judging, peers, history, profiles and plugins, so that no
// two sentences about the same figures disagree.
#pragma once

#include <limits>
#include <span>

namespace muster {

/// What could not be measured or computed.
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Makes the median absolute deviation of normal values their standard deviation.
inline constexpr double kMadToSigma = 1.4826;

/// The mean of the middle two for an even count; NaN of no values, and if one of them is not finite.
double medianOf(std::span<const double> values);

/// Median absolute deviation from `center`; NaN of no values.
double madOf(std::span<const double> values, double center);

/// P(Z > z) of a standard normal.
double normalTail(double z);

/// The z below which a standard normal lies with probability `p`, in (0, 1). Relative error below 1e-9.
double normalQuantile(double p);

/// The z of equal tail for Student's t with `freedom` degrees, by Wallace's approximation (1959).
double normalFromStudent(double t, double freedom);

/// The upper quantile of Student's t at tail probability `p`, in (0, 0.5], by the same author's
/// approximation: exact enough far out.
double studentQuantile(double p, double freedom);

}  // namespace muster
