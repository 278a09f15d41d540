// SPDX-License-Identifier: Apache-2.0
// The digits that a measurement carries: what lies beyond them is neither judged nor written.
#pragma once

#include <string_view>
#include <vector>

namespace muster {

/// Significant digits of what plugins measure. A clock tells a millionth of a short run at best.
inline constexpr int kSampleDigits = 7;
/// Significant digits of what sensors tell: temperature, power, clocks.
inline constexpr int kSensorDigits = 5;

/// The number nearest to `value` that has at most `digits` significant decimal digits. NaN, the infinities
/// and zero stay what they are.
double roundedTo(double value, int digits);

/// Rounds samples of base unit `unit`. What is counted (count, B, bool) is exact and stays as it is.
void roundSamples(std::vector<double>& samples, std::string_view unit, int digits);

}  // namespace muster
