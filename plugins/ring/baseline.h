// SPDX-License-Identifier: Apache-2.0
// What healthy pairs reach, how far they scatter, and from where on a pair is called slow.
#pragma once

#include <cstddef>
#include <vector>

namespace muster::ring {

/// Natural logarithms: a loss of 0.16 is 15%.
struct Baseline {
  double center = 0;     ///< log of the speed of healthy pairs
  double sigma = 0;      ///< of their logs
  double threshold = 0;  ///< a loss beyond it is no chance
};

/// Finds the healthy pairs' centre as the fastest cluster that holds a quarter of all figures, not as the
/// median of all: three bad nodes of eight slow six of eight pairs. The scatter is the MAD of that cluster,
/// on its slower side, drawn towards `floor` where figures are few. `logs` need not be sorted. `family` is
/// the number of figures that are looked at together: the threshold is where one healthy figure among them
/// would lie by chance in one of 5,000 tests.
Baseline findBaseline(std::vector<double> logs, double floor, size_t family);

/// Standard normal quantile of a small upper tail: P(z > result) = tail.
double upperQuantile(double tail);

}  // namespace muster::ring
