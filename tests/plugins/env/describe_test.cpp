// SPDX-License-Identifier: Apache-2.0
// What the env plugin declares: complete, and nothing is left unjudged by accident.
#include "plugins/env/describe.h"

#include <gtest/gtest.h>

#include "kernels/interfaces/inventory.h"
#include "runner/metrics/catalog.h"

namespace muster {
namespace {

PluginSpec spec() {
  auto json = parseJson(env::describeText());
  EXPECT_TRUE(json.ok()) << (json.ok() ? "" : json.error().text());
  auto parsed = pluginSpecFromDescribe("env", *json);
  EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : parsed.error().text());
  return *std::move(parsed);
}

TEST(EnvDescribe, HasItsThreeTestsWithSummaries) {
  const PluginSpec plugin = spec();
  ASSERT_EQ(plugin.tests.size(), 3u);
  for (const TestSpec& test : plugin.tests) {
    EXPECT_FALSE(test.summary.empty()) << test.name;
    for (const MetricSpec& metric : test.metrics) EXPECT_FALSE(metric.summary.empty()) << metric.name;
    for (const ParamSpec& param : test.params) EXPECT_FALSE(param.summary.empty()) << param.name;
  }
}

TEST(EnvDescribe, EveryMetricIsJudgedOrSaysThatItIsInformational) {
  const std::set<std::string> judgedByProfiles{"cpu_quota_ratio"};
  for (const TestSpec& test : spec().tests)
    for (const MetricSpec& metric : test.metrics) {
      const bool judged = !metric.standing.empty() || judgedByProfiles.count(metric.name) != 0;
      EXPECT_NE(judged, metric.informational) << test.name << "." << metric.name;
    }
}

TEST(EnvDescribe, EveryStandingExpectationHasARemedy) {
  for (const TestSpec& test : spec().tests)
    for (const MetricSpec& metric : test.metrics)
      for (const Expectation& standing : metric.standing)
        EXPECT_FALSE(standing.remedy.empty()) << metric.name;
}

TEST(EnvDescribe, TelemetryHoldsWhatHoldsInEveryStage) {
  const PluginSpec plugin = spec();
  const TestSpec* telemetry = plugin.test("telemetry");
  for (const char* name : {reading::kThrottleThermal, reading::kThrottlePowerBrake, reading::kEccUncorrected,
                           reading::kRowRemapPending, reading::kRowRemapFailed, reading::kXidFatal,
                           reading::kCgroupThrottled, "unreadable_sources"}) {
    ASSERT_NE(telemetry->metric(name), nullptr) << name;
    ASSERT_EQ(telemetry->metric(name)->standing.size(), 1u) << name;
    const Expectation& standing = telemetry->metric(name)->standing[0];
    EXPECT_EQ(standing.limit, 0) << name;
    EXPECT_EQ(standing.statistic, "max") << "one bad sample must not vanish in a median: " << name;
    EXPECT_EQ(standing.severity, Severity::kFail) << name;
  }
  const Expectation& software = telemetry->metric("throttle_software_share")->standing.at(0);
  EXPECT_EQ(software.limit, 0.01);
  EXPECT_EQ(software.statistic, "mean") << "of the time, not of its worst second";
  EXPECT_GT(software.warnBand, 0.99) << "any at all is a warning";
  EXPECT_EQ(telemetry->metric(reading::kXidApplication)->standing[0].severity, Severity::kWarn);
  EXPECT_EQ(telemetry->metric(reading::kBusyShare)->standing[0].severity, Severity::kWarn);
}

TEST(EnvDescribe, AMetricBelongsToTheBackendsThatReportIt) {
  EXPECT_EQ(env::metricNames("health", "host").count("ecc_uncorrected"), 0u);
  EXPECT_EQ(env::metricNames("health", "sim").count("ecc_uncorrected"), 1u);
  EXPECT_EQ(env::metricNames("health", "sim").count("limit_memlock"), 0u);
  EXPECT_TRUE(env::metricNames("nonsense", "host").empty());
}

}  // namespace
}  // namespace muster
