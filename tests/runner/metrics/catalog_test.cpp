// SPDX-License-Identifier: Apache-2.0
// Reading what a plugin's describe() says: strictly.
#include "runner/metrics/catalog.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "runner/core/text.h"
#include "runner/core/units.h"

namespace muster {
namespace {
using ::testing::HasSubstr;

Json goodDescribe() {
  return *parseJson(R"({"tests": [{
    "name": "gemm", "summary": "matrix multiplication", "backends": ["host", "sim"], "scopes": ["device"],
    "params": [
      {"name": "size", "type": "int", "default": 2048, "min": 16, "max": 65536, "summary": "M = N = K"},
      {"name": "dtype", "type": "string", "default": "f32", "one_of": ["f32", "bf16"]},
      {"name": "min_time", "type": "quantity", "unit": "s", "default": "2s", "min": "0s", "max": "1h"},
      {"name": "check", "type": "bool", "default": true},
      {"name": "ops", "type": "list", "items": "string", "default": ["copy"], "one_of": ["copy", "triad"]}],
    "metrics": [
      {"name": "throughput", "unit": "FLOP/s", "direction": "higher", "labels": ["dtype"], "peak": "flops.{dtype}"},
      {"name": "wrong", "unit": "count", "direction": "lower", "standing": {"max": 0, "remedy": "replace it"}},
      {"name": "driver", "unit": "text", "informational": true, "optional": true, "backends": ["host"],
       "standing": {"equals": "ok", "severity": "warn"}}]}]})");
}

TEST(PluginSpec, AMetricsRemedyIsThatOfItsStandingExpectations) {
  Json describe = goodDescribe();
  for (Json& metric : describe["tests"][0]["metrics"]) metric["remedy"] = "look";
  const auto spec = pluginSpecFromDescribe("compute", describe);
  ASSERT_TRUE(spec.ok()) << spec.error().text();
  EXPECT_EQ(spec->test("gemm")->metric("throughput")->remedy, "look");
  EXPECT_EQ(spec->test("gemm")->metric("wrong")->standing[0].remedy, "replace it");
  EXPECT_EQ(spec->test("gemm")->metric("driver")->standing[0].remedy, "look");
}

TEST(PluginSpec, TheMetricsOfAGroupsTestHaveItsSizeAsLabels) {
  Json describe = goodDescribe();
  describe["tests"][0]["group"] = true;
  describe["tests"][0]["metrics"][1]["labels"] = {"ranks"};
  const auto spec = pluginSpecFromDescribe("compute", describe);
  ASSERT_TRUE(spec.ok()) << spec.error().text();
  EXPECT_EQ(spec->test("gemm")->metric("throughput")->labels,
            (std::vector<std::string>{"dtype", "ranks", "nodes"}));
  EXPECT_EQ(spec->test("gemm")->metric("wrong")->labels, (std::vector<std::string>{"ranks", "nodes"}));
}

TEST(PluginSpec, ReadsEverythingDescribed) {
  const auto spec = pluginSpecFromDescribe("compute", goodDescribe());
  ASSERT_TRUE(spec.ok()) << spec.error().text();
  const TestSpec* test = spec->test("gemm");
  ASSERT_NE(test, nullptr);
  EXPECT_EQ(test->backends, (std::vector<std::string>{"host", "sim"}));
  EXPECT_EQ(test->param("size")->max, 65536);
  EXPECT_EQ(test->param("min_time")->defaultValue, 2.0);
  EXPECT_EQ(test->param("min_time")->max, 3600);
  EXPECT_EQ(test->param("ops")->itemType, ParamType::kString);
  EXPECT_EQ(test->metric("throughput")->peak, "flops.{dtype}");
  EXPECT_EQ(test->metric("throughput")->direction, Direction::kHigher);
  EXPECT_TRUE(test->metric("driver")->informational);
  EXPECT_TRUE(test->metric("driver")->optional);
  EXPECT_EQ(test->metric("driver")->backends, std::vector<std::string>{"host"});
  EXPECT_EQ(test->param("none"), nullptr);
  EXPECT_EQ(test->metric("none"), nullptr);
  EXPECT_EQ(spec->test("none"), nullptr);
}

Json withThroughput(const std::string& more) {
  Json describe = goodDescribe();
  Json& metric = describe["tests"][0]["metrics"][0];
  metric.update(*parseJson(more));
  return describe;
}

TEST(PluginSpec, TellsALimitOnTheConditionsOfAMeasurementFromOneOnTheMachine) {
  for (const auto& [severity, origin] :
       {std::pair{"fail", "standing"}, {"warn", "standing"}, {"error", "condition"}}) {
    const auto spec = pluginSpecFromDescribe(
        "compute",
        withThroughput(fmt::format(R"({{"standing": {{"min": 1, "severity": "{}"}}}})", severity)));
    ASSERT_TRUE(spec.ok()) << spec.error().text();
    const auto& standing = spec->test("gemm")->metric("throughput")->standing;
    ASSERT_EQ(standing.size(), 1u);
    EXPECT_EQ(standing[0].origin, origin);
  }
}

TEST(PluginSpec, GivesWhatIsSampledOverTimeABuiltInLimitOfItsDrops) {
  const auto spec =
      pluginSpecFromDescribe("compute", withThroughput(R"({"series": "windows", "window": "min_time"})"));
  ASSERT_TRUE(spec.ok()) << spec.error().text();
  const MetricSpec& metric = *spec->test("gemm")->metric("throughput");
  EXPECT_EQ(metric.series, Series::kWindows);
  EXPECT_EQ(metric.window, "min_time");
  ASSERT_EQ(metric.standing.size(), 1u);
  EXPECT_EQ(metric.standing[0].kind, CheckKind::kDropMax);
  EXPECT_EQ(metric.standing[0].metric, "compute.throughput");
  EXPECT_EQ(metric.standing[0].limit, 0.1);
  EXPECT_FALSE(metric.standing[0].source.empty());
  EXPECT_FALSE(metric.standing[0].remedy.empty());
  EXPECT_EQ(spec->test("gemm")->metric("wrong")->standing[0].kind, CheckKind::kMax);
}

TEST(PluginSpec, TakesAnotherLimitOfDrops) {
  const auto spec = pluginSpecFromDescribe(
      "compute",
      withThroughput(R"({"series": "runs", "standing": {"drop_max": "25%", "severity": "warn"}})"));
  ASSERT_TRUE(spec.ok()) << spec.error().text();
  const auto& standing = spec->test("gemm")->metric("throughput")->standing;
  ASSERT_EQ(standing.size(), 1u);
  EXPECT_EQ(standing[0].limit, 0.25);
  EXPECT_EQ(standing[0].severity, Severity::kWarn);
}

TEST(PluginSpec, RefusesSeriesThatCannotBeJudged) {
  const auto error = [](const std::string& more) {
    const auto spec = pluginSpecFromDescribe("compute", withThroughput(more));
    return spec.ok() ? std::string("accepted") : spec.error().text();
  };
  EXPECT_THAT(error(R"({"series": "often"})"), HasSubstr("\"often\" is not a series"));
  EXPECT_THAT(error(R"({"series": "windows"})"), HasSubstr("window"));
  EXPECT_THAT(error(R"({"series": "windows", "window": "size"})"), HasSubstr("quantity in s"));
  EXPECT_THAT(error(R"({"series": "runs", "window": "min_time"})"), HasSubstr("window"));
  EXPECT_THAT(error(R"({"series": "runs", "direction": "none"})"), HasSubstr("needs a direction"));
  EXPECT_THAT(error(R"({"standing": {"drop_max": "10%"}})"), HasSubstr("declare the metric's series"));
}

TEST(PluginSpec, TurnsStandingIntoExpectations) {
  const auto spec = pluginSpecFromDescribe("compute", goodDescribe());
  const auto& standing = spec->test("gemm")->metric("wrong")->standing;
  ASSERT_EQ(standing.size(), 1u);
  EXPECT_EQ(standing[0].metric, "compute.wrong");
  EXPECT_EQ(standing[0].origin, "standing");
  EXPECT_EQ(standing[0].kind, CheckKind::kMax);
  EXPECT_EQ(standing[0].unit, "count");
  EXPECT_EQ(standing[0].remedy, "replace it");
  EXPECT_EQ(standing[0].statistic, "max") << "one bad repeat must not vanish in a median";
  const auto& text = spec->test("gemm")->metric("driver")->standing;
  EXPECT_EQ(text[0].allowed, std::vector<std::string>{"ok"});
  EXPECT_EQ(text[0].severity, Severity::kWarn);
}

TEST(PluginSpec, SaysWhereAStandingLimitComesFrom) {
  Json json = goodDescribe();
  Json& wrong = json["tests"][0]["metrics"][1];
  const auto source = [&] {
    return pluginSpecFromDescribe("compute", json)->test("gemm")->metric("wrong")->standing[0].source;
  };
  EXPECT_EQ(source(), "plugin compute, in every plan");
  wrong["summary"] = "Elements that differ";
  EXPECT_EQ(source(), "plugin compute, in every plan: Elements that differ");
  wrong["standing"]["source"] = "IEEE 754";
  EXPECT_EQ(source(), "IEEE 754");
}

/// What reading says after `change` damaged the good description.
std::string errorAfter(const std::function<void(Json&)>& change) {
  Json json = goodDescribe();
  change(json["tests"][0]);
  const auto spec = pluginSpecFromDescribe("compute", json);
  return spec.ok() ? "read" : spec.error().text();
}

std::string paramError(size_t index, const char* key, const Json& value) {
  return errorAfter([&](Json& test) { test["params"][index][key] = value; });
}

std::string metricError(size_t index, const char* key, const Json& value) {
  return errorAfter([&](Json& test) { test["metrics"][index][key] = value; });
}

TEST(PluginSpec, UnknownKeysNameTestAndKey) {
  EXPECT_EQ(errorAfter([](Json& test) { test["backend"] = 1; }),
            "plugin \"compute\", test \"gemm\": unknown key \"backend\"; did you mean \"backends\"?");
  EXPECT_EQ(paramError(0, "defualt", 1),
            "plugin \"compute\", test \"gemm\", parameter \"size\": unknown key \"defualt\"; did you mean "
            "\"default\"?");
  EXPECT_EQ(metricError(0, "units", "s"),
            "plugin \"compute\", test \"gemm\", metric \"throughput\": unknown key \"units\"; did you mean "
            "\"unit\"?");
  EXPECT_THAT(metricError(1, "standing", {{"maximum", 0}}),
              HasSubstr("unknown key \"maximum\"; known are min, max, equals,"));
}

TEST(PluginSpec, RefusesBadTests) {
  EXPECT_THAT(errorAfter([](Json& t) { t["name"] = "../x"; }), HasSubstr("is not a plain name"));
  EXPECT_THAT(errorAfter([](Json& t) { t["backends"] = Json::array(); }), HasSubstr(".backends: is empty"));
  EXPECT_THAT(errorAfter([](Json& t) { t["backends"] = {"hots"}; }), HasSubstr("did you mean \"host\"?"));
  EXPECT_THAT(errorAfter([](Json& t) { t["scopes"] = {"rack"}; }),
              HasSubstr("expected one of device, node, cluster"));
  EXPECT_THAT(errorAfter([](Json& t) { t.erase("scopes"); }), HasSubstr(".scopes: is missing"));
  EXPECT_THAT(errorAfter([](Json& t) { t["ranks"] = -1; }), HasSubstr("is -1; expected a number above 0"));
  EXPECT_THAT(errorAfter([](Json& t) { t["ranks"] = 0; }), HasSubstr("is 0; expected a number above 0"));
  EXPECT_THAT(errorAfter([](Json& t) { t["params"].push_back(t["params"][0]); }),
              HasSubstr("is declared twice"));
  EXPECT_THAT(errorAfter([](Json& t) { t["metrics"] = 3; }), HasSubstr("expected a list"));
  EXPECT_THAT(errorAfter([](Json& t) { t = "text"; }), HasSubstr("expected an object"));
}

TEST(PluginSpec, RefusesBadParameters) {
  EXPECT_THAT(paramError(0, "type", "integer"), HasSubstr("\"integer\" is not a type"));
  EXPECT_THAT(paramError(0, "default", 8),
              HasSubstr("parameter \"size\".default: found 8; expected a whole number from 16"));
  EXPECT_THAT(paramError(0, "default", "8"), HasSubstr("expected a whole number"));
  EXPECT_THAT(paramError(0, "min", 1e9), HasSubstr("is above max"));
  EXPECT_THAT(paramError(0, "unit", "s"), HasSubstr("only a quantity has one"));
  EXPECT_THAT(paramError(0, "one_of", {"a"}), HasSubstr("on a parameter of type string"));
  EXPECT_THAT(paramError(1, "one_of", Json::array()), HasSubstr("at least one text"));
  EXPECT_THAT(paramError(1, "default", "f64"), HasSubstr("expected one of f32, bf16"));
  EXPECT_THAT(paramError(2, "unit", "parsec"), HasSubstr("is not a base unit"));
  EXPECT_THAT(paramError(2, "min", "5 GiB"), HasSubstr("expected s"));
  EXPECT_THAT(paramError(3, "max", 1), HasSubstr("min and max do not apply"));
  EXPECT_THAT(paramError(4, "items", "list"), HasSubstr("list of lists"));
  EXPECT_THAT(errorAfter([](Json& t) { t["params"][0].erase("default"); }),
              HasSubstr("every parameter needs one"));
}

TEST(PluginSpec, RefusesBadMetrics) {
  EXPECT_THAT(metricError(0, "unit", "TFLOP/s"), HasSubstr("is not a base unit"));
  EXPECT_THAT(metricError(0, "direction", "up"), HasSubstr("expected higher, lower or none"));
  EXPECT_THAT(metricError(0, "peak", "flops.{dtyp}"), HasSubstr("did you mean \"dtype\"?"));
  EXPECT_THAT(metricError(0, "peak", "flops.{dtype"), HasSubstr("without its '}'"));
  EXPECT_THAT(metricError(1, "standing", Json::object()), HasSubstr("found 0 limits"));
  EXPECT_THAT(metricError(1, "standing", {{"max", 1}, {"min", 0}}), HasSubstr("found 2 limits"));
  EXPECT_THAT(metricError(1, "standing", {{"max", "1 GiB"}}), HasSubstr("expected count"));
  EXPECT_THAT(metricError(1, "standing", {{"max", 0}, {"severity", "mild"}}),
              HasSubstr("required: fail, warn or error"));
  EXPECT_THAT(metricError(2, "standing", {{"max", 0}}), HasSubstr("equals with a text"));
  EXPECT_THAT(metricError(2, "backends", {"gpu"}), HasSubstr("expected one of cuda, host, sim"));
}

TEST(PluginSpec, ListsTheBaseUnitsToAnAuthorWhoUsedAnother) {
  const std::string message = metricError(0, "unit", "ms");
  const std::string begin = "\"ms\" is not a base unit; expected one of ";
  ASSERT_THAT(message, HasSubstr(begin));
  std::string list = message.substr(message.find(begin) + begin.size());
  list.replace(list.find(" and "), 5, ", ");
  size_t count = 0;
  for (const std::string& unit : split(list, ',')) {
    EXPECT_TRUE(isBaseUnit(trim(unit))) << unit;
    ++count;
  }
  EXPECT_EQ(count, 15U);
}

TEST(PluginSpec, RefusesAMetricOfABackendThatTheTestLacks) {
  EXPECT_THAT(
      errorAfter([](Json& t) {
        t["backends"] = {"host"};
        t["metrics"] = {{{"name", "m"}, {"unit", "s"}, {"backends", {"sim"}}}};
      }),
      HasSubstr(
          "metric \"m\".backends: names sim, which is not a backend of the test; its backends are host"));
}

TEST(PluginSpec, RefusesADescriptionOfNothing) {
  EXPECT_THAT(pluginSpecFromDescribe("p", {{"tests", Json::array()}}).error().text(), HasSubstr("is empty"));
  EXPECT_THAT(pluginSpecFromDescribe("p", Json::object()).error().text(), HasSubstr(".tests: is missing"));
  EXPECT_THAT(pluginSpecFromDescribe("p", 7).error().text(), HasSubstr("expected an object"));
}

TEST(PluginSpec, OneNameMeansOneUnitInAllTests) {
  Json json = goodDescribe();
  json["tests"].push_back(json["tests"][0]);
  json["tests"][1]["name"] = "other";
  EXPECT_TRUE(pluginSpecFromDescribe("compute", json).ok());
  json["tests"][1]["metrics"][0]["unit"] = "OP/s";
  EXPECT_THAT(
      pluginSpecFromDescribe("compute", json).error().text(),
      HasSubstr(
          "test \"other\", metric \"throughput\": another test declares this metric with another unit"));
}

TEST(Catalog, FindsMetricsByTheirFullName) {
  Catalog catalog;
  catalog.plugins["compute"] = *pluginSpecFromDescribe("compute", goodDescribe());
  ASSERT_NE(catalog.metric("compute.throughput"), nullptr);
  EXPECT_EQ(catalog.metric("compute.throughput")->unit, "FLOP/s");
  for (const char* unknown :
       {"throughput", "compute", "compute.", ".throughput", "compute.none", "other.throughput", ""})
    EXPECT_EQ(catalog.metric(unknown), nullptr) << unknown;
  EXPECT_NE(catalog.plugin("compute"), nullptr);
  EXPECT_EQ(catalog.plugin("none"), nullptr);
}

}  // namespace
}  // namespace muster
