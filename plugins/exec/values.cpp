// SPDX-License-Identifier: Apache-2.0
// Rules for values, and JSON pointers. Regular expressions are in regex.cpp.
#include "plugins/exec/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runner/core/json.h"
#include "runner/core/text.h"
#include "runner/core/units.h"

namespace muster::exec {
namespace {

Error badRule(const std::string& row, const std::string& problem) {
  return {
      ErrorCode::kUsage,
      fmt::format("\"{}\": {}; expected \"NAME{{LABEL=VALUE}} UNIT: PLACE\"", printable(row, 120), problem),
      "values"};
}

Status parseLabels(const std::string& row, const std::string& text, LabelMap& labels) {
  for (const std::string& item : split(text, ',')) {
    const size_t equals = item.find('=');
    if (equals == std::string::npos || equals + 1 == item.size())
      return badRule(row, "\"" + printable(item, 60) + "\" is not LABEL=VALUE");
    const std::string label(trim(item.substr(0, equals)));
    if (!contains(valueLabels(), label))
      return badRule(
          row, fmt::format("\"{}\" is not a label of these metrics{}; they have {}", printable(label, 40),
                           didYouMean(label, valueLabels()), join(valueLabels(), ", ")));
    if (!labels.emplace(label, trim(item.substr(equals + 1))).second)
      return badRule(row, "label " + label + " is there twice");
  }
  return {};
}

/// The unit's metric and scale: "GB/s" is 1e9 B/s.
Status parseUnit(const std::string& row, const std::string& unit, ValueRule& rule) {
  std::string base = unit;
  if (!isBaseUnit(unit)) {
    const auto one = parseQuantity("1 " + unit);
    if (!one.ok() || one->unit.empty())
      return badRule(row, fmt::format("\"{}\" is not a unit", printable(unit, 40)));
    base = one->unit;
    rule.scale = one->value;
  }
  rule.metric = metricOf(base);
  if (rule.metric == nullptr) return badRule(row, "no metric has the unit " + base);
  return {};
}

const char* typeName(const Json& value) {
  return value.is_string() ? "a text" : value.type_name();
}

Result<double> numberIn(const Json& value, const ValueRule& rule) {
  const bool flag = std::string_view(rule.metric->unit) == "bool";
  if (flag && value.is_boolean()) return value.get<bool>() ? 1.0 : 0.0;
  if (!value.is_number())
    return Error{ErrorCode::kProtocol,
                 fmt::format("found {}; expected {}", typeName(value), flag ? "true or false" : "a number"),
                 ""};
  const double number = value.get<double>() * rule.scale;
  if (flag && number != 0 && number != 1)
    return Error{ErrorCode::kProtocol, fmt::format("found {}; expected 0 or 1", number), ""};
  if (!std::isfinite(number)) return Error{ErrorCode::kProtocol, "found a number that is not finite", ""};
  return number;
}

Status takeJson(const Json& found, const ValueRule& rule, Value& value) {
  if (std::string_view(rule.metric->unit) == "text") {
    if (!found.is_string())
      return Error{ErrorCode::kProtocol, fmt::format("found {}; expected a text", typeName(found)), ""};
    value.text = found.get<std::string>();
    return {};
  }
  // A list holds the samples of one value.
  const Json one = Json::array({found});
  const Json& list = found.is_array() ? found : one;
  if (list.empty()) return Error{ErrorCode::kProtocol, "found an empty list; expected a number", ""};
  for (const Json& item : list) {
    MUSTER_TRY(const double number, numberIn(item, rule));
    value.samples.push_back(number);
  }
  return {};
}

}  // namespace

const std::vector<UnitMetric>& unitMetrics() {
  static const std::vector<UnitMetric> all = {
      {"B/s", "bandwidth", "higher", "bytes per second"},
      {"FLOP/s", "flop_rate", "higher", "floating-point operations per second"},
      {"OP/s", "operation_rate", "higher", "operations per second"},
      {"samples/s", "sample_rate", "higher", "samples per second"},
      {"count/s", "event_rate", "none", "events per second"},
      {"s", "time", "lower", "a time"},
      {"B", "size", "none", "size in bytes"},
      {"count", "count", "none", "number of events or items"},
      {"ratio", "ratio", "none", "a share or a ratio"},
      {"Hz", "frequency", "none", "a frequency"},
      {"W", "power", "none", "electrical power"},
      {"degC", "temperature", "lower", "a temperature"},
      {"bool", "flag", "none", "true or false"},
      {"text", "text", "none", "a text"}};
  return all;
}

const UnitMetric* metricOf(std::string_view unit) {
  const auto& all = unitMetrics();
  const auto at = std::find_if(all.begin(), all.end(), [&](const UnitMetric& m) { return unit == m.unit; });
  return at == all.end() ? nullptr : &*at;
}

const std::vector<std::string>& valueLabels() {
  static const std::vector<std::string> labels = {"op",        "dtype", "bytes", "peer",     "port",
                                                  "placement", "ranks", "nodes", "engine",   "numa",
                                                  "direction", "job",   "test",  "statistic"};
  return labels;
}

Result<ValueRule> parseRule(const std::string& row) {
  constexpr size_t kLongest = 2000;
  if (row.size() > kLongest) return badRule(row, fmt::format("it is longer than {} bytes", kLongest));
  ValueRule rule;
  const size_t brace = row.find('{');
  size_t nameEnd = row.find_first_of(" {");
  if (nameEnd == std::string::npos) return badRule(row, "it has no unit");
  size_t unitFrom = nameEnd;
  if (brace == nameEnd) {
    unitFrom = row.find('}', brace);
    if (unitFrom == std::string::npos) return badRule(row, "it has a '{' without its '}'");
    MUSTER_CHECK_OK(parseLabels(row, row.substr(brace + 1, unitFrom - brace - 1), rule.labels));
    ++unitFrom;
  }
  const size_t colon = row.find(": ", unitFrom);
  if (colon == std::string::npos) return badRule(row, "it has no \": \" before its place");
  rule.name = row.substr(0, nameEnd);
  if (!isPlainName(rule.name))
    return badRule(row, "its name is not 1 to 64 letters, digits, '_', '-' and '.'");
  MUSTER_CHECK_OK(parseUnit(row, std::string(trim(row.substr(unitFrom, colon - unitFrom))), rule));
  rule.place = row.substr(colon + 2);
  if (rule.place.empty()) return badRule(row, "its place is empty");
  return rule;
}

Status checkPointer(const std::string& place) {
  try {
    (void)Json::json_pointer(place);
    return {};
  } catch (const Json::exception&) {
    return Error{ErrorCode::kUsage,
                 fmt::format("\"{}\" is not a JSON pointer; expected \"/key/0/key\" (RFC 6901)",
                             printable(place, 120)),
                 "values"};
  }
}

Result<std::vector<Value>> valuesOfJson(std::string_view output, const std::vector<ValueRule>& rules) {
  MUSTER_TRY(const Json document, parseJson(output).context("its output"));
  std::vector<Value> values;
  for (const ValueRule& rule : rules) {
    Value value{rule.name, rule.metric, rule.labels, {}, ""};
    try {
      MUSTER_CHECK_OK(takeJson(document.at(Json::json_pointer(rule.place)), rule, value)
                          .context(fmt::format("value {} at {}", rule.name, printable(rule.place, 120))));
    } catch (const Json::exception&) {
      return Error{
          ErrorCode::kProtocol,
          fmt::format("value {}: its output has nothing at {}", rule.name, printable(rule.place, 120)), ""};
    }
    values.push_back(std::move(value));
  }
  return values;
}

}  // namespace muster::exec
