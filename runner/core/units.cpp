// SPDX-License-Identifier: Apache-2.0
// Parses and formats quantities.
#include "runner/core/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <variant>
#include <vector>

#include "runner/core/duration.h"
#include "runner/core/text.h"

namespace muster {
namespace {

/// A way to write a unit. `prefixes` may stand before it: 'd' k M G T P E, 'b' Ki Mi Gi Ti Pi, 'a' both, '-'
/// none.
struct Symbol {
  std::string_view text;
  std::string_view base;
  double factor;
  char prefixes;
};

constexpr Symbol kSymbols[] = {
    {"FLOP/s", "FLOP/s", 1, 'd'},
    {"FLOPS", "FLOP/s", 1, 'd'},
    {"OP/s", "OP/s", 1, 'd'},
    {"OPS", "OP/s", 1, 'd'},
    {"B/s", "B/s", 1, 'a'},
    {"b/s", "B/s", 0.125, 'd'},
    {"bit/s", "B/s", 0.125, 'd'},
    {"B", "B", 1, 'a'},
    {"Hz", "Hz", 1, 'd'},
    {"W", "W", 1, 'd'},
    {"mW", "W", 1e-3, '-'},
    {"degC", "degC", 1, '-'},
    {"°C", "degC", 1, '-'},
    {"ratio", "ratio", 1, '-'},
    {"%", "ratio", 0.01, '-'},
    {"count", "count", 1, '-'},
    {"count/s", "count/s", 1, '-'},
    {"samples/s", "samples/s", 1, 'd'},
    {"ns", "s", 1e-9, '-'},
    {"us", "s", 1e-6, '-'},
    {"µs", "s", 1e-6, '-'},
    {"μs", "s", 1e-6, '-'},
    {"ms", "s", 1e-3, '-'},
    {"s", "s", 1, '-'},
    {"m", "s", 60, '-'},
    {"min", "s", 60, '-'},
    {"h", "s", 3600, '-'},
    {"d", "s", 86400, '-'},
};

struct Prefix {
  std::string_view text;
  double factor;
};
constexpr Prefix kDecimal[] = {{"E", 1e18}, {"P", 1e15}, {"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3}};
constexpr double kKi = 1024.0;
constexpr Prefix kBinary[] = {{"Pi", kKi* kKi* kKi* kKi* kKi},
                              {"Ti", kKi* kKi* kKi* kKi},
                              {"Gi", kKi* kKi* kKi},
                              {"Mi", kKi* kKi},
                              {"Ki", kKi}};

/// The units a person may write for a base unit; for error messages.
struct BaseUnit {
  std::string_view name;
  std::string_view written;
};
constexpr BaseUnit kBaseUnits[] = {
    {"FLOP/s", "GFLOP/s, TFLOP/s, PFLOP/s"},
    {"OP/s", "GOP/s, TOP/s, POP/s"},
    {"B/s", "MB/s, GB/s, TB/s, GiB/s, Gb/s"},
    {"B", "B, kB, MB, GB, KiB, MiB, GiB, TiB"},
    {"s", "ns, us, ms, s, m, h, d"},
    {"Hz", "Hz, kHz, MHz, GHz"},
    {"W", "W, kW"},
    {"degC", "degC, °C"},
    {"ratio", "% or a plain number"},
    {"number", "a plain number"},
    {"count", "a plain number"},
    {"bool", "true, false"},
    {"count/s", "count/s"},
    {"samples/s", "samples/s"},
    {"text", "no number"},
};

std::string_view writtenUnits(std::string_view base) {
  for (const auto& unit : kBaseUnits)
    if (unit.name == base) return unit.written;
  return "no unit of Muster";
}

std::string allUnits() {
  std::string all;
  for (const auto& unit : kBaseUnits)
    if (unit.name != "bool" && unit.name != "text" && unit.name != "count")
      all += (all.empty() ? "" : "; ") + std::string(unit.written);
  return all;
}

/// What is wrong with a quantity, and what would be right: apart, so that a caller who knows better replaces
/// the latter and a message never holds two.
struct Problem {
  std::string what;
  std::string expected;
};

template <class T>
using Parsed = std::variant<T, Problem>;

Error badQuantity(std::string_view text, const Problem& problem) {
  return {ErrorCode::kUsage,
          fmt::format("\"{}\" {}{}{}", printable(text, 80), problem.what,
                      problem.expected.empty() ? "" : "; expected ", problem.expected),
          ""};
}

std::string inUnit(std::string_view unit) {
  return fmt::format("{} ({})", unit, writtenUnits(unit));
}

struct Scale {
  std::string_view base;
  double factor;
};

std::optional<double> prefixFactor(std::string_view prefix, char allowed) {
  if (allowed == 'd' || allowed == 'a')
    for (const auto& p : kDecimal)
      if (p.text == prefix) return p.factor;
  if (allowed == 'b' || allowed == 'a')
    for (const auto& p : kBinary)
      if (p.text == prefix) return p.factor;
  return std::nullopt;
}

std::string numberPattern() {
  return "[+-]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?";
}

/// A unit with its prefixes. None of them has a character that means something in a regular expression.
std::string symbolPattern(const Symbol& symbol) {
  std::string prefixes;
  const auto add = [&](const auto& list) {
    for (const Prefix& prefix : list) prefixes += std::string(prefix.text) + "|";
  };
  if (symbol.prefixes == 'd' || symbol.prefixes == 'a') add(kDecimal);
  if (symbol.prefixes == 'b' || symbol.prefixes == 'a') add(kBinary);
  return (prefixes.empty() ? "" : "(" + prefixes + ")") + std::string(symbol.text);
}

std::optional<Scale> scaleOf(std::string_view unit) {
  for (const auto& symbol : kSymbols)
    if (symbol.text == unit) return Scale{symbol.base, symbol.factor};
  for (const auto& symbol : kSymbols) {
    if (!unit.ends_with(symbol.text)) continue;
    const auto factor = prefixFactor(unit.substr(0, unit.size() - symbol.text.size()), symbol.prefixes);
    if (factor) return Scale{symbol.base, symbol.factor * *factor};
  }
  return std::nullopt;
}

/// Takes a number off the front of `rest`.
std::optional<double> takeNumber(std::string_view& rest) {
  const bool plus = rest.starts_with('+');
  const std::string_view digits = plus ? rest.substr(1) : rest;
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || !std::isfinite(value) || (plus && digits.starts_with('-'))) return std::nullopt;
  rest = digits.substr(static_cast<size_t>(end - digits.data()));
  return value;
}

/// Takes a unit off the front of `rest`: everything up to a space or the next number.
std::string_view takeUnit(std::string_view& rest) {
  const size_t end = std::min(rest.find_first_of(" \t0123456789+-."), rest.size());
  const std::string_view unit = rest.substr(0, end);
  rest = trim(rest.substr(end));
  return unit;
}

/// "1h30m": further numbers, each with a smaller unit of time than the one before.
Parsed<Quantity> combineDuration(std::string_view rest, double total, double lastFactor) {
  while (!rest.empty()) {
    const auto number = takeNumber(rest);
    rest = trim(rest);
    const auto scale = number ? scaleOf(takeUnit(rest)) : std::nullopt;
    if (!number || *number < 0 || !scale || scale->base != "s" || scale->factor >= lastFactor)
      return Problem{"is not a duration (units go from large to small, each once)", "for example 1h30m"};
    total += *number * scale->factor;
    lastFactor = scale->factor;
  }
  if (!std::isfinite(total)) return Problem{"is too large", ""};
  return Quantity{total, "s"};
}

Problem unknownUnit(std::string_view unit) {
  const bool decimal = unit == "KB" || unit == "KB/s";
  return {fmt::format("has an unknown unit \"{}\"{}", printable(unit, 40),
                      decimal ? " (write kB for 1000 or KiB for 1024 bytes)" : ""),
          "one of: " + allUnits()};
}

Parsed<Quantity> parse(std::string_view text) {
  std::string_view rest = trim(text);
  if (rest == "true" || rest == "false") return Quantity{rest == "true" ? 1.0 : 0.0, "bool"};
  if (rest.empty()) return Problem{"is empty", "a number and a unit, for example 650 TFLOP/s"};
  const auto number = takeNumber(rest);
  if (!number) return Problem{"does not start with a finite number", "for example 650 TFLOP/s, 8 GiB or 5m"};
  rest = trim(rest);
  if (rest.empty()) return Quantity{*number, ""};
  const std::string_view unit = takeUnit(rest);
  const auto scale = scaleOf(unit);
  if (!scale) return unknownUnit(unit.empty() ? rest : unit);
  if (!rest.empty() && scale->base != "s")
    return Problem{fmt::format("has \"{}\" after its unit", printable(rest, 40)), "one number and one unit"};
  if (!rest.empty() && *number < 0)
    return Problem{"is a negative duration in several units", "one unit, for example -90s"};
  const double value = *number * scale->factor;
  if (!std::isfinite(value)) return Problem{"is too large", ""};
  if (!rest.empty()) return combineDuration(rest, value, scale->factor);
  return Quantity{value, std::string(scale->base)};
}

/// The same where only `unit` would do.
Parsed<double> parseIn(std::string_view text, std::string_view unit) {
  Parsed<Quantity> parsed = parse(text);
  if (auto* problem = std::get_if<Problem>(&parsed)) {
    // Its own units, and not all that there are.
    const bool anyUnit =
        problem->what.starts_with("does not start") || problem->what.starts_with("has an unknown");
    if (anyUnit && unit != "text" && unit != "bool") problem->expected = inUnit(unit);
    return *problem;
  }
  const Quantity& quantity = std::get<Quantity>(parsed);
  if ((quantity.unit.empty() && unit != "text") || quantity.unit == unit) return quantity.value;
  return Problem{"is in " + (quantity.unit.empty() ? "no unit" : quantity.unit), inUnit(unit)};
}

/// A plain decimal number of `digits` significant digits without trailing zeros; exponents only for extremes.
std::string plainNumber(double value, int digits) {
  const double magnitude = std::fabs(value);
  if (value == std::floor(value) && magnitude < 1e15) return fmt::format("{:.0f}", value);
  if (magnitude < 1e-4 || magnitude >= 1e15) return fmt::format("{:.{}g}", value, digits);
  const int exponent = static_cast<int>(std::floor(std::log10(magnitude)));
  std::string text = fmt::format("{:.{}f}", value, std::max(0, digits - 1 - exponent));
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

double roundTo(double value, int digits) {
  double rounded = value;
  const std::string text = fmt::format("{:.{}e}", value, digits - 1);
  std::from_chars(text.data(), text.data() + text.size(), rounded);
  return std::isfinite(rounded) ? rounded : value;
}

template <size_t N>
std::string withPrefix(double value, std::string_view unit, const Prefix (&prefixes)[N], int digits) {
  for (const auto& prefix : prefixes) {
    const double scaled = roundTo(value / prefix.factor, digits);
    if (std::fabs(scaled) >= 1) return fmt::format("{} {}{}", plainNumber(scaled, digits), prefix.text, unit);
  }
  return fmt::format("{} {}", plainNumber(roundTo(value, digits), digits), unit);
}

std::string longDuration(double seconds) {
  std::string text;
  for (const auto& [symbol, size] : {std::pair{"d", 86400.0}, {"h", 3600.0}, {"m", 60.0}}) {
    const double count = std::floor(seconds / size);
    if (count > 0) text += fmt::format("{:.0f}{}", count, symbol);
    seconds -= count * size;
  }
  return seconds > 0 ? text + plainNumber(seconds, 4) + "s" : text;
}

std::string formatDuration(double value, int digits) {
  if (value < 0) return "-" + formatDuration(-value, digits);
  if (value == 0) return "0s";
  const double rounded = roundTo(value, digits);
  if (rounded >= 1e9) return fmt::format("{:.{}g}s", value, digits);
  if (rounded >= 60) return longDuration(rounded < 1000 ? std::round(rounded * 10) / 10 : std::round(value));
  for (const auto& [symbol, size] : {std::pair{"s", 1.0}, {"ms", 1e-3}, {"us", 1e-6}})
    if (rounded >= size) return plainNumber(roundTo(value / size, digits), digits) + symbol;
  return plainNumber(roundTo(value / 1e-9, digits), digits) + "ns";
}

std::string nonFinite(double value) {
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

}  // namespace

Result<Quantity> parseQuantity(std::string_view text) {
  const Parsed<Quantity> parsed = parse(text);
  if (const auto* problem = std::get_if<Problem>(&parsed)) return badQuantity(text, *problem);
  return std::get<Quantity>(parsed);
}

Result<double> parseAs(std::string_view text, std::string_view unit) {
  const Parsed<double> parsed = parseIn(text, unit);
  if (const auto* problem = std::get_if<Problem>(&parsed)) return badQuantity(text, *problem);
  return std::get<double>(parsed);
}

Result<double> parseDuration(std::string_view text, const DurationRange& range) {
  const Parsed<double> parsed = parseIn(text, "s");
  Problem problem{"", std::string(range.text)};
  if (const auto* found = std::get_if<Problem>(&parsed)) {
    problem.what = found->what;
  } else {
    const double seconds = std::get<double>(parsed);
    if (seconds >= range.least && seconds <= range.most) return seconds;
    problem.what = seconds < 0 ? "is negative" : seconds < range.least ? "is too short" : "is too long";
  }
  return badQuantity(text, problem);
}

Result<double> parseDuration(std::string_view text) {
  return parseDuration(text, {0, std::numeric_limits<double>::max(), "0s or more, for example 5m"});
}

std::string quantityPattern(std::string_view unit) {
  if (unit == "text") return "[^\\s\\S]";
  if (unit == "bool") return "^\\s*(true|false|" + numberPattern() + ")\\s*$";
  std::string units;
  for (const Symbol& symbol : kSymbols)
    if (symbol.base == unit) units += (units.empty() ? "" : "|") + symbolPattern(symbol);
  const std::string one = numberPattern() + "\\s*(" + units + ")";
  if (unit != "s") return "^\\s*(" + one + "|" + numberPattern() + ")\\s*$";
  return "^\\s*(" + one + "(\\s*" + one + ")*|" + numberPattern() + ")\\s*$";
}

bool isBaseUnit(std::string_view unit) {
  return std::any_of(std::begin(kBaseUnits), std::end(kBaseUnits),
                     [&](const auto& u) { return u.name == unit; });
}

std::string formatQuantity(double value, std::string_view unit, int significantDigits) {
  if (!std::isfinite(value)) return nonFinite(value);
  const int digits = std::clamp(significantDigits, 1, 17);
  if (unit == "s") return formatDuration(value, digits);
  if (unit == "B") return withPrefix(value, unit, kBinary, digits);
  if (unit == "FLOP/s" || unit == "OP/s" || unit == "B/s" || unit == "Hz" || unit == "W")
    return withPrefix(value, unit, kDecimal, digits);
  if (unit == "ratio") return plainNumber(roundTo(value * 100, digits), digits) + "%";
  if (unit == "degC") return plainNumber(roundTo(value, digits), digits) + " °C";
  if (unit == "bool" && (value == 0 || value == 1)) return value == 1 ? "true" : "false";
  // Counts are exact: an error counter of 12345 must not read 12350.
  const std::string number = plainNumber(value == std::floor(value) ? value : roundTo(value, digits), digits);
  return unit.empty() || unit == "number" || unit == "count" || unit == "bool" || unit == "text"
             ? number
             : fmt::format("{} {}", number, unit);
}

}  // namespace muster
