// SPDX-License-Identifier: Apache-2.0
// Rounds numbers to significant digits.
#include "runner/core/digits.h"

#include <array>
#include <charconv>
#include <cmath>

namespace muster {

double roundedTo(double value, int digits) {
  if (!std::isfinite(value) || value == 0) return value;
  // By way of its decimal text: the nearest double to a decimal number, whatever its size.
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.begin(), text.end(), value, std::chars_format::scientific, digits - 1);
  double rounded = value;
  std::from_chars(text.begin(), end.ptr, rounded);
  // The largest doubles round to more than a double holds.
  return std::isfinite(rounded) ? rounded : value;
}

void roundSamples(std::vector<double>& samples, std::string_view unit, int digits) {
  if (unit == "count" || unit == "B" || unit == "bool") return;
  for (double& sample : samples) sample = roundedTo(sample, digits);
}

}  // namespace muster
