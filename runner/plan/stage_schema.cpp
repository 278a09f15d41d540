// SPDX-License-Identifier: Apache-2.0
// Makes the JSON Schema of a stage from the plugins' descriptions.
#include "runner/plan/stage_schema.h"

#include <string>
#include <vector>

#include "runner/core/json_schema.h"
#include "runner/core/text.h"
#include "runner/metrics/expectation_schema.h"
#include "runner/metrics/params.h"
#include "runner/plan/stage_reader.h"

namespace muster {
namespace {

using Names = std::vector<std::string>;

Json not_(Json schema) {
  return {{"not", std::move(schema)}};
}

Json constant(const std::string& text) {
  return {{"const", text}};
}

Names testsOf(const PluginSpec& plugin, const std::string& prefix) {
  Names names;
  for (const TestSpec& test : plugin.tests) names.push_back(prefix + test.name);
  return names;
}

/// That a stage names this test: `test = "compute.gemm"`, or `plugin` and `test`.
Json isTest(const std::string& plugin, const std::string& test) {
  Json both = {{"required", {"plugin", "test"}},
               {"properties", {{"plugin", constant(plugin)}, {"test", constant(test)}}}};
  Json inOne = schema::has("test", constant(plugin + "." + test));
  inOne["not"] = {{"required", {"plugin"}}};
  return schema::anyOf({both, inOne});
}

/// Tables of parameters: those of a test, each by `schemaOf`.
template <typename F>
Json paramTable(const TestSpec& test, F schemaOf) {
  TableSchema table;
  for (const ParamSpec& param : test.params) table.add(param.name, schemaOf(param));
  table.close();
  return table.json();
}

Json axisSchema(const ParamSpec& param) {
  Json axis = schema::list(paramSchema(param));
  axis["uniqueItems"] = true;
  return axis;
}

/// A stage may limit what its test measures.
Json measuredMetrics(const std::string& plugin, const TestSpec& test) {
  Names names;
  for (const MetricSpec& metric : test.metrics) names.push_back(plugin + "." + metric.name);
  const Json one = schema::choice(names);
  return {{"items", {{"properties", {{"metric", schema::anyOf({one, schema::list(one)})}}}}}};
}

Json rulesOf(const std::string& plugin, const TestSpec& test) {
  return {{"properties",
           {{"params", paramTable(test, paramSchema)},
            {"matrix", paramTable(test, axisSchema)},
            {"expect", measuredMetrics(plugin, test)},
            {"scope", schema::choice(test.scopes)}}}};
}

/// Every parameter of every test, so that editors complete them; what a test takes is among its rules.
Json anyParams(const Catalog& catalog) {
  TableSchema table;
  for (const auto& [name, plugin] : catalog.plugins)
    for (const TestSpec& test : plugin.tests)
      for (const ParamSpec& param : test.params)
        table.add(param.name,
                  schema::described(Json::object(), name + "." + test.name + ": " + param.summary));
  return table.json();
}

}  // namespace

Json stageSchema(const Catalog& catalog) {
  TableSchema stage;
  describeStage(stage);
  Names plugins, qualified, plain;
  for (const auto& [name, plugin] : catalog.plugins) {
    plugins.push_back(name);
    for (const std::string& test : testsOf(plugin, name + ".")) qualified.push_back(test);
    for (const std::string& test : testsOf(plugin, "")) plain.push_back(test);
    stage.addRule(schema::when(schema::has("plugin", constant(name)),
                               {{"properties", {{"test", schema::choice(testsOf(plugin, ""))}}}}));
  }
  stage.addRule(schema::when(not_({{"required", {"plugin"}}}),
                             {{"properties", {{"test", schema::choice(qualified)}}}}));
  stage.addRule(schema::when(schema::has("nodes"),
                             {{"required", {"scope"}}, {"properties", {{"scope", constant("cluster")}}}}));
  stage.add("plugin", schema::choice(plugins));
  stage.add("test", schema::anyOf({schema::choice(qualified), schema::choice(plain)}));
  stage.add("params", anyParams(catalog));
  stage.add("matrix", anyParams(catalog));
  stage.add("expect", expectListSchema(false));
  for (const auto& [name, plugin] : catalog.plugins)
    for (const TestSpec& test : plugin.tests)
      stage.addRule(schema::when(isTest(name, test.name), rulesOf(name, test)));
  return stage.json();
}

}  // namespace muster
