// SPDX-License-Identifier: Apache-2.0
// Parameter values of a plan against what the plugin declares: type, range, unit. See params.h and catalog.h.
#include "runner/metrics/params.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "runner/core/json_schema.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/metrics/catalog.h"

namespace muster {
namespace {

/// Whole numbers up to here are exact as doubles.
constexpr double kLargestExact = 9007199254740992.0;

std::string figure(const ParamSpec& spec, double value) {
  return formatQuantity(value, spec.unit.empty() ? "count" : spec.unit, 6);
}

std::string requiredText(const ParamSpec& spec, ParamType type) {
  const std::string range = rangeText(spec).empty() ? "" : " " + rangeText(spec);
  switch (type) {
    case ParamType::kInt:
      return "a whole number" + range;
    case ParamType::kFloat:
      return "a number" + range;
    case ParamType::kBool:
      return "true or false";
    case ParamType::kString:
      return spec.oneOf.empty() ? "a text" : "one of " + join(spec.oneOf, ", ");
    case ParamType::kQuantity:
      return fmt::format("a quantity in {}{}", spec.unit, range);
    case ParamType::kList:
      return "a list, each item " + requiredText(spec, spec.itemType);
  }
  return "";
}

Error bad(const ParamSpec& spec, ParamType type, const Json& value, const std::string& hint = "") {
  return {
      ErrorCode::kUsage,
      fmt::format("found {}; expected {}{}", printable(dumpJson(value), 80), requiredText(spec, type), hint),
      ""};
}

bool inRange(const ParamSpec& spec, double value) {
  return std::isfinite(value) && (!spec.min || value >= *spec.min) && (!spec.max || value <= *spec.max);
}

Result<Json> convertInt(const ParamSpec& spec, const Json& value) {
  if (!value.is_number()) return bad(spec, ParamType::kInt, value);
  const double number = value.get<double>();
  const bool whole = number == std::floor(number) && std::fabs(number) <= kLargestExact;
  if (!whole || !inRange(spec, number)) return bad(spec, ParamType::kInt, value);
  return Json(static_cast<int64_t>(number));
}

Result<Json> convertFloat(const ParamSpec& spec, const Json& value) {
  if (!value.is_number() || !inRange(spec, value.get<double>())) return bad(spec, ParamType::kFloat, value);
  return Json(value.get<double>());
}

Result<Json> convertString(const ParamSpec& spec, const Json& value) {
  if (!value.is_string()) return bad(spec, ParamType::kString, value);
  const auto text = value.get<std::string>();
  if (!spec.oneOf.empty() && std::find(spec.oneOf.begin(), spec.oneOf.end(), text) == spec.oneOf.end())
    return bad(spec, ParamType::kString, value, didYouMean(text, spec.oneOf));
  return value;
}

Result<Json> convertQuantity(const ParamSpec& spec, const Json& value) {
  double number = 0;
  if (value.is_string()) {
    MUSTER_TRY(number, parseAs(value.get<std::string>(), spec.unit));
  } else if (value.is_number()) {
    number = value.get<double>();
  } else {
    return bad(spec, ParamType::kQuantity, value);
  }
  if (!inRange(spec, number)) return bad(spec, ParamType::kQuantity, value);
  return Json(number);
}

Result<Json> convertOne(const ParamSpec& spec, ParamType type, const Json& value);

Result<Json> convertList(const ParamSpec& spec, const Json& value) {
  if (!value.is_array()) return bad(spec, ParamType::kList, value);
  // An empty list would make a test that measures nothing and looks done; where its default says that nothing
  // is meant (no arguments), it may be empty.
  if (value.empty() && spec.defaultValue != Json::array())
    return bad(spec, ParamType::kList, value, "; it needs at least one item");
  Json list = Json::array();
  for (const auto& item : value) {
    MUSTER_TRY(Json converted, convertOne(spec, spec.itemType, item));
    list.push_back(std::move(converted));
  }
  return list;
}

Result<Json> convertOne(const ParamSpec& spec, ParamType type, const Json& value) {
  switch (type) {
    case ParamType::kInt:
      return convertInt(spec, value);
    case ParamType::kFloat:
      return convertFloat(spec, value);
    case ParamType::kBool:
      return value.is_boolean() ? Result<Json>(value) : bad(spec, type, value);
    case ParamType::kString:
      return convertString(spec, value);
    case ParamType::kQuantity:
      return convertQuantity(spec, value);
    case ParamType::kList:
      return convertList(spec, value);
  }
  return Error{ErrorCode::kInternal, "a parameter of unknown type", ""};
}

}  // namespace

std::string rangeText(const ParamSpec& spec) {
  if (spec.min && spec.max)
    return fmt::format("from {} to {}", figure(spec, *spec.min), figure(spec, *spec.max));
  if (spec.min) return fmt::format("at least {}", figure(spec, *spec.min));
  if (spec.max) return fmt::format("at most {}", figure(spec, *spec.max));
  return "";
}

namespace {

Json typeSchema(const ParamSpec& spec, ParamType type) {
  const NumberRange exact{-kLargestExact, kLargestExact};
  const NumberRange range{spec.min.value_or(-std::numeric_limits<double>::infinity()),
                          spec.max.value_or(std::numeric_limits<double>::infinity())};
  switch (type) {
    case ParamType::kInt:
      return schema::whole({std::max(range.min, exact.min), std::min(range.max, exact.max)});
    case ParamType::kFloat:
      return schema::number(range);
    case ParamType::kBool:
      return schema::flag();
    case ParamType::kString:
      return spec.oneOf.empty() ? Json{{"type", "string"}} : schema::choice(spec.oneOf);
    case ParamType::kQuantity:
      return schema::quantity(spec.unit, range);
    case ParamType::kList:
      return schema::list(typeSchema(spec, spec.itemType), spec.defaultValue == Json::array() ? 0 : 1);
  }
  return true;
}

}  // namespace

Json paramSchema(const ParamSpec& spec) {
  const std::string standard = "default " + defaultText(spec);
  return schema::described(typeSchema(spec, spec.type),
                           spec.summary.empty() ? standard : spec.summary + "; " + standard);
}

std::string defaultText(const ParamSpec& spec) {
  if (spec.type == ParamType::kQuantity && spec.defaultValue.is_number())
    return formatQuantity(spec.defaultValue.get<double>(), spec.unit);
  return dumpJson(spec.defaultValue);
}

std::string requiredText(const ParamSpec& spec) {
  return requiredText(spec, spec.type);
}

Result<Json> convertParam(const ParamSpec& spec, const Json& value) {
  return convertOne(spec, spec.type, value);
}

}  // namespace muster
