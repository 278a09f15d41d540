// SPDX-License-Identifier: Apache-2.0
// The helper that samples beside stages: real time on the host, a virtual span in a simulation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <tuple>

#include "plugins/env/describe.h"
#include "tests/plugins/env/control_group.h"
#include "tests/plugins/env/env_run.h"

namespace muster {
namespace {

using testing::ControlGroup;
using testing::EnvMeasurement;
using testing::EnvOptions;
using testing::EnvResult;
using ::testing::HasSubstr;
using testing::runEnv;
using testing::TempDir;

constexpr const char* kScenario = R"(schema = 1
name = "small"
[devices]
count = 2
name = "Test GPU"
pci_id = "10de:0001"
memory = "1 GB"
[figures.gemm]
bf16 = "1 TFLOP/s"
[figures.memory]
read = "1 GB/s"
write = "1 GB/s"
copy = "1 GB/s"
triad = "1 GB/s"
)";

EnvResult runSpan(const TempDir& dir, const std::string& faults, const Json& params) {
  EnvOptions options;
  options.backend = "sim";
  options.scenario = dir.write("small.toml", std::string(kScenario) + faults);
  options.params = params;
  return runEnv("telemetry", options);
}

double sumOf(const std::vector<EnvMeasurement>& measurements, const std::string& device) {
  double sum = 0;
  for (const EnvMeasurement& m : measurements)
    if (m.labels.count("device") != 0 && m.labels.at("device") == device) sum += m.value;
  return sum;
}

/// What a device's counter came to, its last sample.
double totalOf(const std::vector<EnvMeasurement>& measurements, const std::string& device) {
  double total = 0, last = 0;
  for (const EnvMeasurement& m : measurements)
    if (m.labels.at("device") == device && m.time >= last) std::tie(last, total) = std::pair(m.time, m.value);
  return total;
}

TEST(EnvTelemetry, SamplesTheHostUntilItsTimeIsUp) {
  EnvOptions options;
  options.params = {{"interval", "100ms"}, {"duration", "300ms"}};
  const EnvResult result = runEnv("telemetry", options);
  ASSERT_EQ(result.state, "ok") << result.output;
  EXPECT_GE(result.of("load").size(), 3u);
  EXPECT_EQ(result.of("cgroup_throttled").size(), result.of("load").size() - 1) << "growth needs two samples";
  EXPECT_FALSE(result.of("busy_share").empty());
  const std::set<std::string> declared = env::metricNames("telemetry", "host");
  for (const EnvMeasurement& m : result.measurements) EXPECT_EQ(declared.count(m.metric), 1u) << m.metric;
  for (const EnvMeasurement& m : result.of("unreadable_sources"))
    EXPECT_EQ(m.value, 0) << (m.labels.count("sources") != 0 ? m.labels.at("sources") : "");
}

TEST(EnvTelemetry, SamplesOnceMoreWhenItIsToldToStop) {
  EnvOptions options;
  options.params = {{"interval", "1h"}};
  options.wrapper = {"timeout", "--foreground", "-s", "TERM", "1"};
  const EnvResult result = runEnv("telemetry", options);
  EXPECT_EQ(result.of("load").size(), 2u) << result.output;
}

TEST(EnvTelemetry, HandsItsCountersOverToTheNextStage) {
  EnvOptions options;
  options.params = {{"interval", "1h"}};
  options.wrapper = {"timeout", "--foreground", "-s", "TERM", "1"};
  const EnvMeasurement given = runEnv("telemetry", options).one("counters");
  EXPECT_EQ(env::metricNames("telemetry", "host").count("counters"), 1u);
  options.counters = given.text;
  const EnvResult next = runEnv("telemetry", options);
  EXPECT_EQ(next.message, "") << next.output;
  const auto keys = [](const std::string& text) {
    std::vector<std::string> names;
    for (const auto& [name, value] : (*parseJson(text))["counts"].items()) names.push_back(name);
    return names;
  };
  EXPECT_EQ(keys(next.one("counters").text), keys(given.text));
  options.counters = "{}";
  EXPECT_THAT(runEnv("telemetry", options).message, HasSubstr("context.counters"));
}

TEST(EnvTelemetry, ThrottlingByAQuotaIsSeenWhileItHappens) {
  const ControlGroup group(5);
  if (!group.usable()) GTEST_SKIP() << group.why();
  EnvOptions options;
  options.params = {{"interval", "200ms"}, {"duration", "1s"}};
  options.wrapper = group.wrapper();
  // A spinning companion in the same group uses the quota up for as long as the helper lives, which has to
  // wait.
  options.wrapper[2] = "echo $$ > " + (group.folder() / "cgroup.procs").string() +
                       " && { timeout 60 sh -c \"while kill -0 $$; do :; done\" > /dev/null 2>&1 & } && "
                       "exec \"$@\"";
  const EnvResult result = runEnv("telemetry", options);
  double throttled = 0;
  for (const EnvMeasurement& m : result.of("cgroup_throttled")) {
    throttled = std::max(throttled, m.value);
    EXPECT_EQ(m.labels.at("cgroup"), group.folder().string());
  }
  EXPECT_GT(throttled, 0) << result.output;
}

TEST(EnvTelemetry, CoversAVirtualSpanWithBothEnds) {
  const TempDir dir;
  const EnvResult result = runSpan(dir, "", {{"start", "10s"}, {"end", "12.5s"}, {"load", "compute"}});
  ASSERT_EQ(result.state, "ok") << result.output;
  std::vector<double> times;
  for (const EnvMeasurement& m : result.of("temperature"))
    if (m.labels.at("device") == "gpu0") times.push_back(m.time);
  EXPECT_EQ(times, (std::vector<double>{10, 11, 12, 12.5}));
}

TEST(EnvTelemetry, ReportsEveryCounterOverASpanWithoutTime) {
  const TempDir dir;
  const EnvResult result = runSpan(dir, "", {{"start", "10s"}, {"end", "10s"}});
  ASSERT_EQ(result.state, "ok") << result.output;
  EXPECT_EQ(result.of("ecc_uncorrected").size(), 2u);
  EXPECT_EQ(totalOf(result.of("ecc_uncorrected"), "gpu0"), 0);
}

TEST(EnvTelemetry, StretchesTheIntervalOfALongSpan) {
  const TempDir dir;
  const EnvResult result = runSpan(dir, "", {{"start", "0s"}, {"end", "24h"}, {"max_samples", 50}});
  ASSERT_EQ(result.state, "ok");
  EXPECT_LE(result.of("temperature").size(), 2u * 51u);
  EXPECT_EQ(result.of("temperature").back().time, 86400);
}

TEST(EnvTelemetry, AnEccBurstIsGrowthOfTheDeviceThatHasIt) {
  const TempDir dir;
  const std::string fault = "[[fault]]\nkind = \"ecc\"\ndevice = 1\nat = \"5s\"\nuncorrected = 3\n";
  const EnvResult during = runSpan(dir, fault, {{"start", "4s"}, {"end", "8s"}});
  ASSERT_EQ(during.state, "ok") << during.output;
  EXPECT_EQ(totalOf(during.of("ecc_uncorrected"), "gpu1"), 3);
  EXPECT_EQ(totalOf(during.of("ecc_uncorrected"), "gpu0"), 0);
  const EnvResult after = runSpan(dir, fault, {{"start", "8s"}, {"end", "12s"}});
  EXPECT_EQ(totalOf(after.of("ecc_uncorrected"), "gpu1"), 0) << "the stage before it was to blame";
}

TEST(EnvTelemetry, WhatStrikesAtTheVeryStartCounts) {
  const TempDir dir;
  const EnvResult result = runSpan(dir, "[[fault]]\nkind = \"xid\"\ndevice = 0\nat = \"0s\"\nxid = 79\n",
                                   {{"start", "0s"}, {"end", "2s"}});
  ASSERT_EQ(result.state, "ok") << result.output;
  EXPECT_EQ(totalOf(result.of("xid_fatal"), "gpu0"), 1);
  EXPECT_THAT(result.one("last_xid").text, HasSubstr("79"));
}

TEST(EnvTelemetry, APowerLimitCountsWhereItSlowsAGpuFarBelowItsPeers) {
  const TempDir dir;
  const auto cap = [](int device, const char* factor) {
    return "[[fault]]\nkind = \"throttle\"\nreason = \"power_cap\"\nfrom = \"2s\"\ndevice = " +
           std::to_string(device) + "\nfactor = " + factor + "\n";
  };
  const auto excess = [&](int devices, const std::string& faults) {
    EnvOptions options;
    options.backend = "sim";
    std::string text = std::string(kScenario) + faults;
    text.replace(text.find("count = 2"), 9, "count = " + std::to_string(devices));
    options.scenario = dir.write("some.toml", text);
    options.params = {{"start", "0s"}, {"end", "4s"}, {"load", "compute"}};
    return runEnv("telemetry", options).of("throttle_power_excess");
  };
  const auto one = excess(4, cap(1, "0.6"));
  EXPECT_DOUBLE_EQ(totalOf(one, "gpu1"), 2);
  EXPECT_DOUBLE_EQ(totalOf(one, "gpu0"), 0);
  EXPECT_DOUBLE_EQ(totalOf(excess(4, cap(1, "0.8")), "gpu1"), 0) << "a GPU that is capped harder than others";
  const auto all = excess(4, cap(0, "0.6") + cap(1, "0.6") + cap(2, "0.6") + cap(3, "0.6"));
  for (const char* device : {"gpu0", "gpu1", "gpu2", "gpu3"}) EXPECT_DOUBLE_EQ(totalOf(all, device), 0);
  EXPECT_TRUE(excess(2, cap(1, "0.6")).empty()) << "two tell nothing of each other";
}

TEST(EnvTelemetry, ReportsTheShareOfTimeThatSoftwareThrottled) {
  const TempDir dir;
  const std::string fault =
      "[[fault]]\nkind = \"throttle\"\nreason = \"thermal_software\"\ndevice = 1\nfactor = 0.9\nfrom = "
      "\"2s\"\n"
      "until = \"4s\"\n";
  const EnvResult result = runSpan(dir, fault, {{"start", "1s"}, {"end", "9s"}, {"load", "compute"}});
  ASSERT_EQ(result.state, "ok") << result.output;
  EXPECT_DOUBLE_EQ(sumOf(result.of("throttle_software_share"), "gpu1"), 2);
  EXPECT_DOUBLE_EQ(sumOf(result.of("throttle_software_share"), "gpu0"), 0);
  EXPECT_DOUBLE_EQ(totalOf(result.of("throttle_thermal"), "gpu1"), 0) << "that would be the hardware's";
}

TEST(EnvTelemetry, OneRankOfManyReportsItsOwnDeviceAndTheNode) {
  const TempDir dir;
  EnvOptions options;
  options.backend = "sim";
  options.scenario = dir.write("small.toml", kScenario);
  options.device = {{"id", "gpu1"}};
  options.worldSize = 2;
  const EnvResult result = runEnv("health", options);
  ASSERT_EQ(result.state, "ok") << result.output;
  EXPECT_EQ(result.one("row_remap_failed").labels.at("device"), "gpu1");
}

}  // namespace
}  // namespace muster
