// SPDX-License-Identifier: Apache-2.0
// compute.sustained over the C border: windows, drift, every result compared.
#include <gtest/gtest.h>

#include "tests/plugins/recording_host.h"
#include "tests/plugins/scenario.h"

namespace muster::testing {
namespace {

class ComputeSustained : public ::testing::Test {
 protected:
  CaseResult onSim(const std::string& faults, const Json& params) {
    const auto path = folder_.write("scenario.toml", scenarioText(faults));
    return plugin_.run(host_, "sustained", params, contextFor("sim", "gpu0", path.string()));
  }
  TempDir folder_;
  PluginLibrary plugin_{"compute"};
  RecordingHost host_;
};

Json burn() {
  return Json{{"size", 8192}, {"dtype", "bf16"}, {"duration", "20s"}, {"window", "2s"}};
}

TEST_F(ComputeSustained, ComparesEveryResultOnThisCpu) {
  const Json params = {{"size", 64}, {"duration", "50ms"}, {"window", "10ms"}, {"reference_samples", 50}};
  const auto result = plugin_.run(host_, "sustained", params, contextFor("host", "cpu0"));
  ASSERT_EQ(result.ran, MUSTER_OK) << host_.error;
  plugin_.expectDeclared(host_, "sustained");
  EXPECT_EQ(host_.value("sustained_mismatches"), 0);
  EXPECT_EQ(host_.value("sustained_wrong_elements"), 0);
  EXPECT_GT(host_.value("sustained_comparisons"), 1);
  EXPECT_GT(host_.value("sustained_duty"), 0);
  EXPECT_LE(host_.value("sustained_duty"), 1);
}

TEST_F(ComputeSustained, RunsOnceWhenItHasNoTime) {
  const auto result =
      plugin_.run(host_, "sustained", {{"size", 32}, {"duration", "0s"}}, contextFor("host", "cpu0"));
  ASSERT_EQ(result.ran, MUSTER_OK) << host_.error;
  EXPECT_EQ(host_.told("sustained_throughput").at(0).samples.size(), 1u);
  EXPECT_EQ(host_.value("sustained_comparisons"), 1);
}

TEST_F(ComputeSustained, TakesOneSampleAWindow) {
  ASSERT_EQ(onSim("", burn()).ran, MUSTER_OK) << host_.error;
  const Told rate = host_.told("sustained_throughput").at(0);
  EXPECT_NEAR(static_cast<double>(rate.samples.size()), 10, 1);
  for (double sample : rate.samples) EXPECT_NEAR(sample, 700e12, 20e12);
  EXPECT_LT(host_.value("sustained_drift"), 0.02);
  EXPECT_GE(host_.value("sustained_duty"), 0.99);
}

TEST_F(ComputeSustained, ShowsTheDriftOfAThrottlingDevice) {
  const std::string throttle =
      "[[fault]]\nkind = \"throttle\"\ndevice = 0\nfrom = \"110s\"\nfactor = 0.7\n"
      "reason = \"thermal\"\n";
  ASSERT_EQ(onSim(throttle, burn()).ran, MUSTER_OK) << host_.error;
  EXPECT_NEAR(host_.value("sustained_drift"), 0.3, 0.03);
}

TEST_F(ComputeSustained, FindsOneWrongResultAmongMany) {
  ASSERT_EQ(onSim(corruption("gemm", 1000, 4096, 3), burn()).ran, MUSTER_OK) << host_.error;
  EXPECT_GT(host_.value("sustained_mismatches"), 0);
  EXPECT_EQ(host_.logs.size(), 1u);
}

TEST_F(ComputeSustained, FillsTheMemoryThatItIsGiven) {
  Json params = burn();
  params["memory"] = 0.5;
  ASSERT_EQ(onSim("", params).ran, MUSTER_OK) << host_.error;
  plugin_.expectDeclared(host_, "sustained");
  const double one = 4.0 * 8192 * 8192 * 2;
  EXPECT_GT(host_.value("sustained_memory"), 10 * one);
  EXPECT_LE(host_.value("sustained_memory"), 0.5 * 100e9);
  EXPECT_EQ(host_.value("sustained_mismatches"), 0);
  EXPECT_GT(host_.value("sustained_comparisons"), 1000);
}

TEST_F(ComputeSustained, ComparesAsOftenAsItIsTold) {
  Json params = burn();
  params["check_interval"] = "2s";
  ASSERT_EQ(onSim("", params).ran, MUSTER_OK) << host_.error;
  EXPECT_NEAR(host_.value("sustained_comparisons"), 10, 1);
}

TEST_F(ComputeSustained, StopsSoonWhenItIsCancelled) {
  host_.cancelAfter = 3;
  Json params = burn();
  params["duration"] = "7d";
  EXPECT_EQ(onSim("", params).ran, MUSTER_CANCELLED);
  EXPECT_TRUE(host_.measurements.empty());
}

}  // namespace
}  // namespace muster::testing
