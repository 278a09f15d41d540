// SPDX-License-Identifier: Apache-2.0
// Makes JSON Schemas of tables.
#include "runner/core/json_schema.h"

#include <algorithm>
#include <cmath>

#include "runner/core/text.h"
#include "runner/core/units.h"

namespace muster {
namespace schema {
namespace {

Json bounded(const char* type, NumberRange range) {
  Json json = {{"type", type}};
  const auto bound = [&](const char* key, double value) {
    if (!std::isfinite(value)) return;
    if (value == std::floor(value) && std::fabs(value) < 1e15)
      json[key] = static_cast<int64_t>(value);
    else
      json[key] = value;
  };
  bound("minimum", range.min);
  bound("maximum", range.max);
  return json;
}

}  // namespace

Json text() {
  return {{"type", "string"}, {"pattern", "\\S"}};
}

Json plainName() {
  return {{"type", "string"}, {"pattern", "^[A-Za-z0-9_][A-Za-z0-9_.-]*$"}, {"maxLength", 64}};
}

Json flag() {
  return {{"type", "boolean"}};
}

Json number(NumberRange range) {
  return bounded("number", range);
}

Json whole(NumberRange range) {
  return bounded("integer", range);
}

Json quantity(const std::string& unit, NumberRange range) {
  return anyOf({number(range), {{"type", "string"}, {"pattern", quantityPattern(unit)}}});
}

Json choice(const std::vector<std::string>& allowed) {
  return {{"enum", allowed}};
}

Json list(Json item, size_t least) {
  return {{"type", "array"}, {"items", std::move(item)}, {"minItems", least}};
}

Json anyOf(std::vector<Json> schemas) {
  return {{"anyOf", std::move(schemas)}};
}

Json described(Json value, const std::string& summary) {
  if (summary.empty()) return value;
  if (value == true) value = Json::object();  // both take any value
  value["description"] = summary;
  return value;
}

Json when(Json condition, Json then) {
  return {{"if", std::move(condition)}, {"then", std::move(then)}};
}

Json has(const std::string& key, Json value) {
  return {{"required", {key}}, {"properties", {{key, std::move(value)}}}};
}

Json hasOneOf(const std::vector<std::string>& keys) {
  std::vector<Json> each;
  for (const std::string& key : keys) each.push_back({{"required", {key}}});
  return anyOf(std::move(each));
}

}  // namespace schema

/// The property of that key; a new one takes any value.
TableSchema::Property& TableSchema::at(const std::string& key) {
  const auto at = std::find_if(properties_.begin(), properties_.end(),
                               [&](const Property& property) { return property.key == key; });
  return at == properties_.end() ? properties_.emplace_back(Property{key, true}) : *at;
}

void TableSchema::add(const std::string& key, Json value) {
  Property& property = at(key);
  // What only asks whether a key is there knows nothing of its value.
  if (property.table == nullptr && value != Json(true)) property.value = std::move(value);
}

void TableSchema::require(const std::string& key) {
  add(key, true);
  if (!contains(required_, key)) required_.push_back(key);
}

void TableSchema::explain(const std::string& key, const std::string& summary) {
  at(key).summary = summary;
}

void TableSchema::addPattern(const std::string& pattern, Json value) {
  patterns_.emplace_back(pattern, std::move(value));
}

void TableSchema::addRule(Json rule) {
  rules_.push_back(std::move(rule));
}

TableSchema& TableSchema::child(const std::string& key, bool isList) {
  Property& property = at(key);
  property.isList = isList;
  if (property.table == nullptr) property.table = &children_.emplace_back();
  return *property.table;
}

TableSchema& TableSchema::table(const std::string& key) {
  return child(key, false);
}

TableSchema& TableSchema::item(const std::string& key) {
  return child(key, true);
}

TableSchema& TableSchema::variant(const std::string& key, const std::string& value) {
  variants_.push_back({key, value, &children_.emplace_back()});
  return *variants_.back().schema;
}

Json TableSchema::jsonOf(const Property& property) {
  Json value = property.table == nullptr ? property.value : property.table->json();
  if (property.isList) value = schema::list(std::move(value), 0);
  return schema::described(std::move(value), property.summary);
}

Json TableSchema::base() const {
  Json properties = Json::object();
  for (const Property& property : properties_) properties[property.key] = jsonOf(property);
  // Editors complete the keys of variants too; what they take is said by the variant.
  for (const Variant& variant : variants_)
    for (const Property& property : variant.schema->properties_)
      if (!properties.contains(property.key)) properties[property.key] = true;
  Json json = {{"type", "object"}, {"properties", properties}};
  for (const auto& [pattern, value] : patterns_) json["patternProperties"][pattern] = value;
  if (!required_.empty()) json["required"] = required_;
  if (closed_) json["additionalProperties"] = false;
  return json;
}

Json TableSchema::jsonOf(const Variant& variant) const {
  Json then = variant.schema->base();
  for (const Property& property : properties_)
    if (!then["properties"].contains(property.key)) then["properties"][property.key] = true;
  return schema::when(schema::has(variant.key, {{"const", variant.value}}), std::move(then));
}

/// Keys stand in an object of their own below "allOf": there Taplo finds them for completion.
Json TableSchema::json() const {
  if (variants_.empty() && rules_.empty()) return base();
  std::vector<Json> all = {base()};
  for (const Variant& variant : variants_) {
    all.push_back(jsonOf(variant));
    for (const Json& rule : variant.schema->rules_)
      all.push_back(schema::when(schema::has(variant.key, {{"const", variant.value}}), rule));
  }
  all.insert(all.end(), rules_.begin(), rules_.end());
  return {{"allOf", all}};
}

Json schemaDocument(const std::string& title, const Json& root) {
  Json document = {{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", title}};
  document.update(root);
  return document;
}

}  // namespace muster
