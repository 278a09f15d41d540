// SPDX-License-Identifier: Apache-2.0
// Axes of plots: the unit people read, round tick values, and positions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// The unit that a plot is labelled in: display value = base value * factor.
struct DisplayUnit {
  double factor = 1;
  std::string suffix;  ///< "TFLOP/s"; empty for plain numbers
};

/// The unit in which values up to `largest` (in base unit `unit`) read best.
DisplayUnit displayUnit(double largest, std::string_view unit);

/// About `wanted` round values (1, 2 or 5 times a power of ten) inside [low, high].
std::vector<double> roundTicks(double low, double high, int wanted);

/// A number with just the digits it needs: "0.25", "1200", "3".
std::string plainNumber(double value);

/// Maps [low, high] linearly, or by logarithm, to [from, to].
struct Axis {
  double low = 0;
  double high = 1;
  double from = 0;
  double to = 1;
  bool logarithmic = false;
  [[nodiscard]] double at(double value) const;
};

}  // namespace muster
