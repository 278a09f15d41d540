// SPDX-License-Identifier: Apache-2.0
// Samples as short JSON that gives back every one of them bit for bit.
#pragma once

#include <string>
#include <vector>

#include "runner/core/json.h"

namespace muster {

/// A number as JSON without a needless ".0". Minus zero and what is not finite keep their own forms.
Json shortNumber(double value);

/// The power of ten in whose units all of `lists` are whole numbers, where that makes them notably shorter:
/// {2.986557e12, 2.986106e12} are 2986557 and 2986106 with 6. Otherwise 0.
int commonExponent(const std::vector<const std::vector<double>*>& lists);

/// `samples` in units of 10^exponent. Equal ones, three or more, become {"n": 300, "value": 0}.
Json packedSamples(const std::vector<double>& samples, int exponent);

/// Reads what packedSamples wrote (and any list of numbers). Errors name `path`.
Result<std::vector<double>> unpackedSamples(const Json& json, int exponent, const std::string& path);

/// More equal samples than this are not packed, and no file may claim to.
inline constexpr size_t kMostPacked = 1000;
/// Ten has an exact double up to this power, so that one multiplication or division gives the nearest double.
inline constexpr int kMostExponent = 22;

/// `value` x 10^exponent, correctly rounded while |exponent| <= kMostExponent and value is whole and below
/// 2^53.
double scaledByTen(double value, int exponent);

}  // namespace muster
