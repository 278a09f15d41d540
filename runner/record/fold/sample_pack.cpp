// SPDX-License-Identifier: Apache-2.0
// Packs and unpacks samples without loss.
#include "runner/record/fold/sample_pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

namespace muster {
namespace {

constexpr double kWholeBelow = 9007199254740992.0;  // 2^53: every whole number below has a double
constexpr size_t kWorthIt = 64;                     // bytes; less is not worth a reader's thought
constexpr size_t kLeastPacked = 3;

constexpr std::array<double, kMostExponent + 1> kTens = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                         1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                         1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/// The power of ten of the last digit of `value`'s shortest decimal form.
int lastDigitPower(double value) {
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.begin(), text.end(), value, std::chars_format::scientific);
  const char* const point = std::find(text.begin(), end.ptr, '.');
  const char* const mark = std::find(text.begin(), end.ptr, 'e');
  int power = 0;
  std::from_chars(mark[1] == '+' ? mark + 2 : mark + 1, end.ptr, power);
  return point == end.ptr ? power : power - static_cast<int>(mark - point - 1);
}

/// The whole number that stands for `value` in units of 10^exponent, if it gives `value` back exactly.
std::optional<double> wholeOf(double value, int exponent) {
  const double whole = std::nearbyint(scaledByTen(value, -exponent));
  if (std::fabs(whole) >= kWholeBelow || scaledByTen(whole, exponent) != value) return std::nullopt;
  return whole;
}

bool allEqual(const std::vector<double>& samples) {
  return std::all_of(samples.begin(), samples.end(), [&](double x) {
    return x == samples.front() && std::signbit(x) == std::signbit(samples[0]);
  });
}

size_t textLength(const Json& json) {
  return dumpJson(json).size();
}

}  // namespace

double scaledByTen(double value, int exponent) {
  const double ten = kTens[static_cast<size_t>(std::abs(exponent))];
  return exponent < 0 ? value / ten : value * ten;
}

Json shortNumber(double value) {
  const bool whole = std::fabs(value) < kWholeBelow && value == std::nearbyint(value);
  if (!whole || (value == 0 && std::signbit(value))) return numberToJson(value);
  return static_cast<int64_t>(value);
}

int commonExponent(const std::vector<const std::vector<double>*>& lists) {
  int exponent = kMostExponent;
  bool any = false;
  for (const auto* list : lists)
    for (const double value : *list) {
      if (!std::isfinite(value)) continue;
      if (value == 0) {
        if (std::signbit(value)) return 0;
        continue;
      }
      any = true;
      exponent = std::min(exponent, lastDigitPower(value));
      if (exponent < -kMostExponent) return 0;
    }
  if (!any || exponent == 0) return 0;
  size_t plain = 0;
  size_t packed = 0;
  for (const auto* list : lists) {
    for (const double value : *list)
      if (std::isfinite(value) && !wholeOf(value, exponent)) return 0;
    plain += textLength(packedSamples(*list, 0));
    packed += textLength(packedSamples(*list, exponent));
  }
  return packed + kWorthIt <= plain ? exponent : 0;
}

Json packedSamples(const std::vector<double>& samples, int exponent) {
  const auto number = [&](double value) {
    return exponent == 0 || !std::isfinite(value) ? shortNumber(value)
                                                  : shortNumber(wholeOf(value, exponent).value_or(value));
  };
  if (samples.size() >= kLeastPacked && samples.size() <= kMostPacked && allEqual(samples))
    return {{"n", samples.size()}, {"value", number(samples.front())}};
  Json list = Json::array();
  for (const double value : samples) list.push_back(number(value));
  return list;
}

Result<std::vector<double>> unpackedSamples(const Json& json, int exponent, const std::string& path) {
  if (std::abs(exponent) > kMostExponent)
    return Error{ErrorCode::kProtocol, fmt::format("the exponent {} is beyond {}", exponent, kMostExponent),
                 path};
  std::vector<double> samples;
  if (json.is_object()) {
    uint64_t n = 0;
    double value = 0;
    JsonReader reader(json, path);
    reader.read("n", n);
    reader.read("value", value);
    if (reader.ok() && (n == 0 || n > kMostPacked))
      reader.fail("n", fmt::format("is {}; expected 1 to {}", n, kMostPacked));
    if (!reader.ok()) return reader.status().error();
    samples.assign(n, value);
  } else {
    const Json wrapped = {{"samples", json}};
    JsonReader reader(wrapped, path);
    reader.read("samples", samples);
    if (!reader.ok()) return reader.status().error();
  }
  if (exponent != 0)
    for (double& sample : samples) sample = scaledByTen(sample, exponent);
  return samples;
}

}  // namespace muster
