// SPDX-License-Identifier: Apache-2.0
// Makes the JSON Schemas of expectations.
#include "runner/metrics/expectation_schema.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "runner/core/json_schema.h"
#include "runner/core/text.h"
#include "runner/metrics/expectation_reader.h"

namespace muster {
namespace {

using Names = std::vector<std::string>;

/// What a key is about, for editors; the words are those of plans/README.md.
const std::map<std::string, std::string>& summaries() {
  static const std::map<std::string, std::string> kSummaries = {
      {"metric", "metric that is limited, plugin.name; a list: one expectation for each"},
      {"where", "labels of the measurements that are limited; a list of values: one expectation for each"},
      {"params",
       "of a profile: the limit holds only for stages with these test parameters"},
      {"min", "least value, in the metric's unit"},
      {"max", "largest value, in the metric's unit"},
      {"equals", "required value"},
      {"one_of", "allowed values"},
      {"contains", "words that must be in the text"},
      {"excludes", "words that must not be in the text"},
      {"baseline", "value from which `tolerance` counts"},
      {"within", "largest share worse than the median of `of`"},
      {"of_peak", "least share of the theoretical peak"},
      {"cv_max", "largest coefficient of variation over all samples"},
      {"drop_max", "largest drop of any time interval below the measurement's own level"},
      {"tolerance", "largest share worse than `baseline`"},
      {"of", "whose median `within` means"},
      {"statistic", "statistic to compare; default median"},
      {"warn_band", "values that pass by less than this share give a warning"},
      {"severity", "result of a miss; default fail"},
      {"source", "where the limit comes from"},
      {"remedy", "what to do if the limit is missed"},
      {"set", "name of a set in `expectations` whose keys this table takes, unless it has its own"}};
  return kSummaries;
}

Json reference(const std::string& name) {
  return {{"$ref", "#/definitions/" + name}};
}

Json maybeList(const Json& one) {
  return schema::anyOf({one, schema::list(one)});
}

Json labelSchema() {
  const Json one = schema::anyOf({{{"type", "string"}}, {{"type", "integer"}}, schema::flag()});
  return {{"type", "object"}, {"additionalProperties", maybeList(one)}};
}

/// Any value of a limit; the unit depends on the metric.
Json limitSchema() {
  return {{"type", {"number", "string", "boolean"}}};
}

Json keySchema(const std::string& key) {
  if (key == "metric") return maybeList(reference("metric"));
  if (key == "where" || key == "params") return labelSchema();
  if (key == "one_of") return schema::list(limitSchema());
  if (key == "contains" || key == "excludes") return maybeList(schema::text());
  if (key == "statistic" || key == "severity" || key == "of") return schema::choice(expectationChoices(key));
  if (key == "source" || key == "remedy" || key == "set") return schema::text();
  if (key == "min" || key == "max" || key == "equals" || key == "baseline") return limitSchema();
  return schema::quantity("ratio", expectationShare(key));
}

/// What metrics have in common that decides which limits they take.
struct Kind {
  std::string unit;
  Names labels;
  bool ordered;
  bool lowerIsBetter;
  bool peak;
  bool series;
  bool remedy;
  auto operator<=>(const Kind&) const = default;
};

std::map<Kind, Names> kindsOf(const Catalog& catalog) {
  std::map<Kind, Names> kinds;
  for (const auto& [plugin, spec] : catalog.plugins)
    for (const TestSpec& test : spec.tests)
      for (const MetricSpec& metric : test.metrics) {
        const std::string name = plugin + "." + metric.name;
        const MetricSpec& read = *catalog.metric(name);  // the reader takes the first of equal name
        Names& names = kinds[{read.unit, read.labels, read.direction != Direction::kNone,
                              read.direction == Direction::kLower, !read.peak.empty(),
                              read.series != Series::kNone, !read.remedy.empty()}];
        if (!contains(names, name)) names.push_back(name);
      }
  return kinds;
}

/// The definition of values in a unit. A slash would be a step of the reference.
std::string valueName(const std::string& unit, bool aboveZero) {
  std::string name = unit;
  if (const size_t slash = name.find('/'); slash != std::string::npos) name.replace(slash, 1, "-per-");
  return (aboveZero ? "positive-" : "value-") + name;
}

Json valueSchema(const std::string& unit, bool aboveZero) {
  Json number = schema::number();
  if (aboveZero) number["exclusiveMinimum"] = 0;
  std::vector<Json> forms = {number, schema::quantity(unit)["anyOf"][1]};
  if (unit == "bool") forms.push_back(schema::flag());
  return schema::anyOf(std::move(forms));
}

void limitText(Json& keys) {
  for (const char* key : {"min", "max", "baseline"}) keys[key] = false;
  keys["equals"] = {{"type", "string"}};
  keys["one_of"] = {{"items", {{"type", "string"}}}};
}

void limitNumber(const Kind& kind, Json& keys) {
  const bool signedUnit = kind.unit == "degC";
  keys["min"] = reference(valueName(kind.unit, !signedUnit));
  keys["baseline"] = reference(valueName(kind.unit, !signedUnit && !kind.lowerIsBetter));
  keys["max"] = keys["equals"] = reference(valueName(kind.unit, false));
  keys["one_of"] = {{"items", reference(valueName(kind.unit, false))}};
  for (const char* key : {"contains", "excludes"}) keys[key] = false;
}

Json rulesOf(const Kind& kind, bool provenance) {
  Json keys = Json::object();
  if (kind.unit == "text")
    limitText(keys);
  else
    limitNumber(kind, keys);
  if (!kind.ordered) keys["baseline"] = keys["within"] = false;
  if (!kind.peak) keys["of_peak"] = false;
  if (!kind.series) keys["drop_max"] = false;
  Names labels = kind.labels;
  labels.emplace_back("device");
  keys["where"] = {{"propertyNames", schema::choice(labels)}};
  Json then = {{"properties", keys}};
  if (provenance && !kind.remedy)
    then = {{"allOf", {then, {{"anyOf", {{{"required", {"set"}}}, {{"required", {"remedy"}}}}}}}}};
  return then;
}

Json isAbout(const Names& metrics) {
  return schema::has("metric", schema::anyOf({schema::choice(metrics),
                                              {{"type", "array"}, {"contains", schema::choice(metrics)}}}));
}

/// A table that takes nothing from a set must be complete.
Json completeness(bool provenance) {
  Names required = {"metric"};
  if (provenance) required.emplace_back("source");
  Json then = schema::hasOneOf(expectationChecks());
  then["required"] = required;
  then["dependencies"] = {
      {"baseline", {"tolerance"}}, {"tolerance", {"baseline"}}, {"within", {"of"}}, {"of", {"within"}}};
  return schema::when({{"not", {{"required", {"set"}}}}}, then);
}

/// All keywords but "type" are about tables alone, so that a text or a list passes them.
Json tableSchema(const Json& type) {
  TableSchema table;
  Names keys = expectationKeys();
  keys.emplace_back("set");
  for (const std::string& key : keys)
    if (key != "predicate")  // a Lua function
      table.add(key, schema::described(keySchema(key), summaries().at(key)));
  table.close();
  table.addRule(reference("limits"));
  Json json = table.json();
  json["allOf"][0]["type"] = type;
  return json;
}

}  // namespace

Json expectListSchema(bool provenance) {
  Json item = tableSchema({"object", "string"});
  item["allOf"].push_back(completeness(provenance));
  Json list = schema::list(std::move(item), 0);
  list["maxItems"] = kMostExpectations;
  return list;
}

Json expectationSetsSchema() {
  const Json one = tableSchema("object");
  return {{"type", "object"},
          {"propertyNames", schema::plainName()},
          {"additionalProperties", schema::anyOf({one, schema::list(one)})}};
}

Json expectationDefinitions(const Catalog& catalog, bool provenance) {
  Names metrics;
  Json definitions = Json::object();
  std::vector<Json> rules;
  for (const auto& [kind, names] : kindsOf(catalog)) {
    metrics.insert(metrics.end(), names.begin(), names.end());
    rules.push_back(schema::when(isAbout(names), rulesOf(kind, provenance)));
    for (const bool aboveZero : {false, true})
      definitions[valueName(kind.unit, aboveZero)] = valueSchema(kind.unit, aboveZero);
  }
  std::sort(metrics.begin(), metrics.end());
  definitions["metric"] = schema::choice(metrics);
  definitions["limits"] = {{"allOf", rules}};
  return definitions;
}

}  // namespace muster
