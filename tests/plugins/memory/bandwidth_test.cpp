// SPDX-License-Identifier: Apache-2.0
// memory.bandwidth over the C border: on the real memory with small buffers, and on simulated devices.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/plugins/recording_host.h"
#include "tests/plugins/scenario.h"

namespace muster::testing {
namespace {

Json quick() {
  return Json{{"bytes", "1 MiB"}, {"warmup", "5ms"}, {"min_time", "10ms"}, {"max_time", "20ms"}};
}

class MemoryBandwidth : public ::testing::Test {
 protected:
  CaseResult onHost(const Json& params) {
    return plugin_.run(host_, "bandwidth", params, contextFor("host", "cpu0"));
  }
  CaseResult onSim(const std::string& faults, const Json& params) {
    const auto path = folder_.write("scenario.toml", scenarioText(faults));
    return plugin_.run(host_, "bandwidth", params, contextFor("sim", "gpu0", path.string()));
  }
  TempDir folder_;
  PluginLibrary plugin_{"memory"};
  RecordingHost host_;
};

TEST_F(MemoryBandwidth, TimesEachKernelAndChecksTheCopy) {
  ASSERT_EQ(onHost(quick()).ran, MUSTER_OK) << host_.error;
  plugin_.expectDeclared(host_, "bandwidth");
  std::vector<std::string> ops;
  for (const Told& told : host_.told("bandwidth")) {
    ops.push_back(told.labels.at("op"));
    for (double rate : told.samples) EXPECT_GT(rate, 0);
  }
  EXPECT_EQ(ops, (std::vector<std::string>{"read", "write", "copy", "triad"}));
  EXPECT_EQ(host_.value("bandwidth_wrong_elements"), 0);
  EXPECT_EQ(host_.value("bandwidth_buffer"), 1 << 20);
}

TEST_F(MemoryBandwidth, TimesOnlyWhatItIsAskedFor) {
  Json params = quick();
  params["ops"] = {"copy"};
  ASSERT_EQ(onHost(params).ran, MUSTER_OK) << host_.error;
  EXPECT_EQ(host_.told("bandwidth").size(), 1u);
  EXPECT_EQ(host_.value("bandwidth_wrong_elements"), 0);
}

TEST_F(MemoryBandwidth, FailsWhereTheBuffersDoNotFit) {
  Json params = quick();
  params["bytes"] = "16 TiB";
  EXPECT_EQ(onHost(params).ran, MUSTER_ERROR);
  EXPECT_NE(host_.error.find("out of memory: required 16 TiB"), std::string::npos) << host_.error;
}

TEST_F(MemoryBandwidth, CountsBytesAsStreamDoes) {
  ASSERT_EQ(onSim("", {{"bytes", "1 GiB"}}).ran, MUSTER_OK) << host_.error;
  ASSERT_EQ(host_.told("bandwidth").size(), 4u);
  for (const Told& told : host_.told("bandwidth"))
    EXPECT_NEAR(told.samples.back(), 3e12, 0.1e12) << told.labels.at("op");
}

TEST_F(MemoryBandwidth, ChoosesBuffersPastTheCache) {
  ASSERT_EQ(onSim("", Json::object()).ran, MUSTER_OK) << host_.error;
  EXPECT_EQ(host_.value("bandwidth_buffer"), 200.0 * (1 << 20));
  EXPECT_TRUE(host_.logs.empty());
}

TEST_F(MemoryBandwidth, FindsACopyThatDiffers) {
  ASSERT_EQ(onSim(corruption("memory", 1, 800, 5), quick()).ran, MUSTER_OK) << host_.error;
  EXPECT_GT(host_.value("bandwidth_wrong_elements"), 0);
  EXPECT_EQ(host_.logs.size(), 3u) << "write, copy and triad";
}

TEST_F(MemoryBandwidth, FindsOneWrongCopyOfMany) {
  Json params = quick();
  params["ops"] = {"copy"};
  ASSERT_EQ(onSim(corruption("memory", 17, 800, 5), params).ran, MUSTER_OK) << host_.error;
  EXPECT_GT(host_.value("bandwidth_wrong_elements"), 0);
}

/// Results that are wrong for a while, longer than a warm-up, and right again at the end.
TEST_F(MemoryBandwidth, FindsAnySpanOfWrongResults) {
  for (int tenth = 0; tenth < 20; ++tenth) {
    const double begin = 100 + 0.1 * tenth;
    const std::string span = fmt::format("from = {}\nuntil = {}\n", begin, begin + 0.35);
    RecordingHost host;
    const auto path = folder_.write("scenario.toml", scenarioText(corruption("memory", 1, 800, 5) + span));
    ASSERT_EQ(
        plugin_
            .run(host, "bandwidth", {{"ops", {"write", "triad"}}}, contextFor("sim", "gpu0", path.string()))
            .ran,
        MUSTER_OK)
        << host.error;
    EXPECT_GT(host.value("bandwidth_wrong_elements"), 0) << span;
    EXPECT_FALSE(host.logs.empty()) << span;
  }
}

TEST_F(MemoryBandwidth, StopsSoonWhenItIsCancelled) {
  host_.cancelAfter = 2;
  EXPECT_EQ(onHost(quick()).ran, MUSTER_CANCELLED);
}

TEST_F(MemoryBandwidth, ShowsProgressOverAllKernels) {
  ASSERT_EQ(onHost(quick()).ran, MUSTER_OK) << host_.error;
  EXPECT_TRUE(std::is_sorted(host_.fractions.begin(), host_.fractions.end()));
  EXPECT_EQ(host_.lastProgress, "triad");
}

}  // namespace
}  // namespace muster::testing
