// SPDX-License-Identifier: Apache-2.0
// Chooses units, tick values and positions of an axis.
#include "reports/html/plots/axis.h"

#include <fmt/format.h>

#include <cmath>

#include "runner/core/units.h"

namespace muster {
namespace {

/// Further from zero than so many steps, steps come near to the distance of two doubles.
constexpr double kFarthestStep = 1e12;

/// Durations are written as "1h30m" for people, which no axis can use.
DisplayUnit durationUnit(double largest) {
  if (largest >= 2 * 3600) return {1.0 / 3600, "h"};
  if (largest >= 180) return {1.0 / 60, "min"};
  if (largest >= 1 || largest == 0) return {1, "s"};
  if (largest >= 1e-3) return {1e3, "ms"};
  return {1e6, "us"};
}

}  // namespace

DisplayUnit displayUnit(double largest, std::string_view unit) {
  if (unit == "s") return durationUnit(largest);
  if (unit == "ratio") return {100, "%"};
  if (unit == "number" || unit == "count" || unit == "bool" || unit == "text" || unit.empty()) return {1, ""};
  const std::string text = formatQuantity(largest, unit, 6);
  const size_t space = text.find(' ');
  if (space == std::string::npos || !std::isfinite(largest) || largest == 0) return {1, std::string(unit)};
  const double shown = std::atof(text.c_str());
  if (shown == 0) return {1, std::string(unit)};
  // The text is rounded: the nearest power of ten or of 1024 is the factor meant.
  const double ratio = largest / shown;
  const double ten = std::pow(10, std::round(std::log10(ratio)));
  const double binary = std::exp2(10 * std::round(std::log2(ratio) / 10));
  const bool isBinary = text.find("iB") != std::string::npos;
  return {1 / (isBinary ? binary : ten), text.substr(space + 1)};
}

std::vector<double> roundTicks(double low, double high, int wanted) {
  if (!(high > low) || wanted < 1) return {low};
  const double raw = (high - low) / wanted;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  const double share = raw / power;
  const double step = power * (share < 1.5 ? 1 : share < 3.5 ? 2 : share < 7.5 ? 5 : 10);
  const double first = std::ceil(low / step - 1e-9);
  if (!(std::fabs(first) < kFarthestStep)) return {low};
  std::vector<double> ticks;
  for (int i = 0; i <= 2 * wanted && (first + i) * step <= high + step * 1e-9; ++i)
    ticks.push_back((first + i) * step);
  return ticks;
}

std::string plainNumber(double value) {
  if (!std::isfinite(value)) return "";
  if (value == 0) return "0";
  const double size = std::fabs(value);
  if (size >= 1e7 || size < 1e-4) return fmt::format("{:.3g}", value);
  const int decimals = size >= 100 ? 1 : size >= 1 ? 2 : 4;
  std::string text = fmt::format("{:.{}f}", value, decimals);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

double Axis::at(double value) const {
  if (logarithmic) {
    const double share = std::log(value / low) / std::log(high / low);
    return from + (to - from) * share;
  }
  return high == low ? from : from + (to - from) * (value - low) / (high - low);
}

}  // namespace muster
