// SPDX-License-Identifier: Apache-2.0
// memory.latency over the C border: a real chase through this machine's memory, and simulated devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/plugins/recording_host.h"
#include "tests/plugins/scenario.h"

namespace muster::testing {
namespace {

Json quickParams() {
  return Json{
      {"bytes", "1 MiB"}, {"steps", 10007}, {"warmup", "5ms"}, {"min_time", "10ms"}, {"max_time", "20ms"}};
}

class MemoryLatency : public ::testing::Test {
 protected:
  CaseResult onSim(const std::string& more, const Json& params) {
    const auto path = folder_.write("scenario.toml", scenarioText(more));
    return plugin_.run(host_, "latency", params, contextFor("sim", "gpu0", path.string()));
  }
  TempDir folder_;
  PluginLibrary plugin_{"memory"};
  RecordingHost host_;
};

TEST_F(MemoryLatency, FollowsARealRingToItsEnd) {
  ASSERT_EQ(plugin_.run(host_, "latency", quickParams(), contextFor("host", "cpu0")).ran, MUSTER_OK)
      << host_.error;
  plugin_.expectDeclared(host_, "latency");
  EXPECT_EQ(host_.value("latency_wrong_ends"), 0);
  EXPECT_EQ(host_.value("latency_ring"), 1 << 20);
  const Told told = host_.told("latency").at(0);
  for (double seconds : told.samples) EXPECT_GT(seconds, 0);
}

TEST_F(MemoryLatency, RoundsTheRingDownToAPowerOfTwoOfLines) {
  Json params = quickParams();
  params["bytes"] = "1000000 B";
  params["stride"] = "64 B";
  ASSERT_EQ(plugin_.run(host_, "latency", params, contextFor("host", "cpu0")).ran, MUSTER_OK) << host_.error;
  EXPECT_EQ(host_.value("latency_ring"), 8192 * 64);
}

TEST_F(MemoryLatency, RefusesLinesThatDoNotFit) {
  Json params = quickParams();
  params["stride"] = "2 MiB";
  EXPECT_EQ(plugin_.run(host_, "latency", params, contextFor("host", "cpu0")).ran, MUSTER_BAD_PARAMETER);
  EXPECT_NE(host_.error.find("does not fit 1048576 B"), std::string::npos) << host_.error;
}

TEST_F(MemoryLatency, IsTheScenarios) {
  ASSERT_EQ(onSim("[figures]\nlatency = \"600ns\"\n", Json::object()).ran, MUSTER_OK) << host_.error;
  EXPECT_NEAR(host_.told("latency").at(0).samples.back(), 600e-9, 20e-9);
  EXPECT_EQ(host_.value("latency_wrong_ends"), 0);
}

TEST_F(MemoryLatency, IsUnsupportedWhereTheScenarioKnowsNone) {
  EXPECT_EQ(onSim("", Json::object()).ran, MUSTER_UNSUPPORTED);
  EXPECT_NE(host_.error.find("`latency`"), std::string::npos);
}

}  // namespace
}  // namespace muster::testing
