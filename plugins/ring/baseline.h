// SPDX-License-Identifier: Apache-2.0
// What healthy pairs reach, how far they scatter, and from where on a pair is called slow.
#pragma once

#include <cstddef>
#include <vector>

namespace muster::ring {

/// How long the noise's tail towards slow is. Noise of several lanes can be added up: one shape, more
/// figures.
struct Tail {
  double cubes = 0;    ///< of the distances, in sigmas, of the figures that are slower than the centre
  double figures = 0;  ///< so many

  Tail& operator+=(const Tail& other);
  /// By how much farther out than normal noise a rare figure lies; 1 or more. A few figures say little.
  [[nodiscard]] double factor() const;
};

/// Natural logarithms: a loss of 0.16 is 15%.
struct Baseline {
  double center = 0;     ///< log of the speed of healthy pairs
  double sigma = 0;      ///< of their logs
  double threshold = 0;  ///< a loss beyond it is no chance; from slowThreshold()
  Tail tail;
};

/// Finds the healthy pairs' centre as the fastest cluster that holds a quarter of all figures, not as the
/// median of all: three bad nodes of eight slow six of eight pairs. The scatter is the MAD of that cluster,
/// on its slower side, drawn towards `floor` where figures are few. `logs` need not be sorted.
Baseline findBaseline(std::vector<double> logs, double floor);

/// The loss from which on a pair is slow: one healthy figure of `family` that are looked at together would
/// lie there by chance in one of 5,000 tests.
double slowThreshold(double sigma, const Tail& tail, size_t family);

/// Standard normal quantile of a small upper tail: P(z > result) = tail.
double upperQuantile(double tail);

}  // namespace muster::ring
