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
  /// By how much farther out than normal noise a rare figure lies; 1 or more. The rarer it is, the higher the
  /// `power`. A few figures say little.
  [[nodiscard]] double factor(double power) const;
};

/// Losses by which a pair is judged, as logarithms: 0.16 is 15%.
struct Limits {
  double remeasure = 0;  ///< a single figure beyond it: the pair is remeasured in the same round
  double slow = 0;       ///< a single figure beyond it is no chance
  double confirms = 0;   ///< a single figure beyond it confirms, in a later round, what another one said
  double slowAgain = 0;  ///< of a remeasured pair: several figures that all lie beyond it are no chance
};

/// Natural logarithms.
struct Baseline {
  double center = 0;   ///< log of the speed of healthy pairs
  double sigma = 0;    ///< of their logs, as far as the figures are believed
  double seen = 0;     ///< the same, as the figures say it
  double figures = 0;  ///< so many
  double floor = 0;    ///< what it would be without any
  Tail tail;           ///< of the figures, by what was seen
  Limits limits;       ///< from limitsOf()
};

/// Finds the healthy pairs' centre as the fastest cluster that holds one `part`-th of all figures, not as the
/// median of all: three bad nodes of eight slow six of eight pairs. The scatter is the MAD of that cluster,
/// on its slower side, drawn towards `floor` where figures are few. `logs` need not be sorted.
Baseline findBaseline(std::vector<double> logs, double floor, size_t part = 4);

/// For `family` figures that are judged together, whose noise has this tail. Of healthy tests one in ten
/// looks at a pair again, and hardly one in 100,000 needs another round.
Limits limitsOf(const Baseline& base, const Tail& tail, size_t family);

}  // namespace muster::ring
