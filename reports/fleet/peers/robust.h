// SPDX-License-Identifier: Apache-2.0
// A location that a minority of sick values cannot move, with the efficiency of a mean.
#pragma once

#include <span>

namespace muster::fleet {

/// Huber's M-estimate (k = 1.5) of values with standard deviation `sigma`, drawn towards 0 as if `prior` more
/// values had been 0. Prior 0: no shrinkage.
double huberMean(std::span<const double> values, double sigma, double prior = 0);

}  // namespace muster::fleet
