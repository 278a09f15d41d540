// SPDX-License-Identifier: Apache-2.0
// Physical quantities as people write them ("650 TFLOP/s", "8 GiB", "5m") and as Muster computes with them.
#pragma once

#include <string>
#include <string_view>

#include "runner/core/result.h"

namespace muster {

/// A number in a base unit. Base units: "FLOP/s", "OP/s", "B/s", "B", "s", "Hz", "W", "degC", "MHz" is 1e6
/// "Hz", "ratio" (percentages are 1/100 of it), "number" (no unit), "count", "bool" (0 or 1), "count/s",
/// "samples/s" and "text" (no number).
struct Quantity {
  double value = 0;
  std::string unit;  ///< a base unit; empty when a bare number was written
};

/// Reads "650 TFLOP/s", "8 GiB", "1.5e3 GB/s", "5m", "250ms", "3%", "85 °C", "7". GB is 1e9 bytes, GiB 2^30.
/// Durations also combine: "1h30m". Errors name the text and list the units that would fit.
Result<Quantity> parseQuantity(std::string_view text);

/// Reads `text` as a value of `unit` (a base unit); a bare number is taken as already in that unit.
Result<double> parseAs(std::string_view text, std::string_view unit);

/// Reads a duration ("90s", "5m", "24h", "500ms") as seconds; must be finite and not negative.
Result<double> parseDuration(std::string_view text);

/// A regular expression (ECMAScript) of the texts that parseAs() reads as a value of `unit`. It is a little
/// wider: it does not compute, so it knows neither how large a number is nor in which order the parts of a
/// duration stand.
std::string quantityPattern(std::string_view unit);

/// Whether `unit` is one of the base units.
bool isBaseUnit(std::string_view unit);

/// Writes a value in base unit `unit` with the prefix people use: (7.1e14, "FLOP/s") -> "710 TFLOP/s",
/// (300, "s") -> "5m", (0.031, "ratio") -> "3.1%", bytes in binary prefixes ("8 GiB"), B/s in decimal ones.
std::string formatQuantity(double value, std::string_view unit, int significantDigits = 4);

}  // namespace muster
