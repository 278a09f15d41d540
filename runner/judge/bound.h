// SPDX-License-Identifier: Apache-2.0
// The bounds that numeric expectations come to once baseline, peers or peak are resolved.
#pragma once

#include <limits>
#include <string>

#include "runner/core/result.h"
#include "runner/judge/check.h"

namespace muster {

/// An observed figure must lie in [low, high]; either side may be infinite.
struct Bound {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  std::string text;  ///< "at least 650 TFLOP/s"
};

/// Where a figure lies against a bound.
struct BoundDistance {
  bool met = false;
  double limit = 0;   ///< the side that is missed, or the nearer one
  double margin = 0;  ///< share of that limit; negative: missed; NaN when the limit is 0
};

BoundDistance distanceTo(const Bound& bound, double observed);

/// The bound of a min, max, baseline, within or of_peak expectation. kUnsupported: there is nothing to
/// compare with on a node of one device; any other error: it cannot be judged.
Result<Bound> boundOf(const Expectation& expectation, const Group& group, const JudgeContext& context,
                      const Peers& peers);

/// Equal up to the rounding of a unit conversion.
bool sameFigure(double a, double b);

}  // namespace muster
