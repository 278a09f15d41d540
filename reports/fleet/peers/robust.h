// SPDX-License-Identifier: Apache-2.0
// Location and spread that a minority of sick values cannot move.
#pragma once

#include <span>
#include <vector>

namespace muster::fleet {

/// Makes the median absolute deviation of normal values their standard deviation.
inline constexpr double kMadToSigma = 1.4826;

/// NaN of no values. Values must be finite.
double medianOf(std::span<const double> values);

/// Median absolute deviation from `center`.
double madOf(std::span<const double> values, double center);

/// A location with the efficiency of a mean: Huber's M-estimate (k = 1.5) of values with standard deviation
/// `sigma`, drawn towards 0 as if `prior` more values had been 0. Prior 0: no shrinkage.
double huberMean(std::span<const double> values, double sigma, double prior = 0);

/// P(Z > z) of a standard normal.
double normalTail(double z);

/// The z with normalTail(z) = p, for 0 < p < 1.
double normalFromTail(double p);

/// The z of equal tail for Student's t with `freedom` degrees, by Wallace's approximation.
double normalFromStudent(double t, double freedom);

}  // namespace muster::fleet
