// SPDX-License-Identifier: Apache-2.0
// Key metrics: one each for compute, memory, links and temperature, with the value of every device.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace muster::fleet {

inline constexpr size_t kKeyFigureCount = 4;
inline constexpr size_t kTemperature = 3;
inline constexpr std::array<const char*, kKeyFigureCount> kKeyFigureNames = {"Compute", "Memory", "Links",
                                                                             "Temperature"};

struct KeyFigure {
  struct Point {
    double value = 0;  ///< base unit
    size_t node = 0;   ///< index into Fleet::nodes
    std::string device;
  };
  std::string name;  ///< for people; empty: nothing of this class was measured
  std::string sku;
  std::string unit;  ///< base unit
  bool higherIsBetter = true;
  double limit = std::numeric_limits<double>::quiet_NaN();  ///< NaN: the profile has none
  double median = 0;
  std::vector<Point> points;  ///< the worst first
};

using KeyFigures = std::array<KeyFigure, kKeyFigureCount>;

/// A value for each of them; NaN where it was not measured.
using KeyValues = std::array<double, kKeyFigureCount>;
inline constexpr double kNoKeyValue = std::numeric_limits<double>::quiet_NaN();
inline constexpr KeyValues kNoKeyValues = {kNoKeyValue, kNoKeyValue, kNoKeyValue, kNoKeyValue};

}  // namespace muster::fleet
