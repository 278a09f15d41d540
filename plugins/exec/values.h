// SPDX-License-Identifier: Apache-2.0
// Values in a program's output: rules that say where they are, and two ways to follow them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runner/core/result.h"

namespace muster::exec {

/// A metric of this plugin. There is one for each base unit, because a metric has one unit.
struct UnitMetric {
  const char* unit;
  const char* metric;
  const char* direction;
  const char* summary;
};
const std::vector<UnitMetric>& unitMetrics();
/// That of a base unit; nullptr: there is none.
const UnitMetric* metricOf(std::string_view unit);

/// Labels that a value may have beside its name.
const std::vector<std::string>& valueLabels();

using LabelMap = std::map<std::string, std::string>;

/// One row of the parameter `values`.
struct ValueRule {
  std::string name;
  LabelMap labels;
  const UnitMetric* metric = nullptr;
  double scale = 1;  ///< of its unit to the base unit: 1e9 for GB/s
  std::string place;
};

/// Reads "NAME{LABEL=VALUE,...} UNIT: PLACE"; labels may be left out. kUsage says what is wrong with the row.
Result<ValueRule> parseRule(const std::string& row);

/// What was found: samples in the metric's base unit, or a text.
struct Value {
  std::string name;
  const UnitMetric* metric = nullptr;
  LabelMap labels;
  std::vector<double> samples;
  std::string text;
};

/// Finds the value of each rule in a JSON document; kProtocol where one is missing, of another type or not
/// finite.
Result<std::vector<Value>> valuesOfJson(std::string_view output, const std::vector<ValueRule>& rules);

/// The same by regular expressions (RE2's, in which ^ and $ match at lines). Further matches with the same
/// labels are further samples; groups named like labels give these.
Result<std::vector<Value>> valuesByRegex(std::string_view output, const std::vector<ValueRule>& rules);

/// What `muster import` reads from the output of another tool: names are Muster's metrics. kProtocol also
/// where that tool calls a result failed, or has none.
Result<std::vector<Value>> valuesOfTool(std::string_view output, const std::string& format);

/// kUsage where `place` is no regular expression with a group "value", is too large, or names an unknown
/// label.
Status checkRegex(const std::string& place);
/// kUsage where it is no JSON pointer.
Status checkPointer(const std::string& place);

}  // namespace muster::exec
