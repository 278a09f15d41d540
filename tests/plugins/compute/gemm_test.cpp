// SPDX-License-Identifier: Apache-2.0
// compute.gemm over the C border: on the real CPU with tiny matrices, and on simulated devices with planted
// faults.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/plugins/recording_host.h"
#include "tests/plugins/scenario.h"

namespace muster::testing {
namespace {

Json quick() {
  return Json{{"size", 96},
              {"warmup", "10ms"},
              {"min_time", "20ms"},
              {"max_time", "50ms"},
              {"reference_samples", 100}};
}

Json with(Json params, const std::string& key, const Json& value) {
  params[key] = value;
  return params;
}

class ComputeGemm : public ::testing::Test {
 protected:
  CaseResult onHost(const Json& params) {
    return plugin_.run(host_, "gemm", params, contextFor("host", "cpu0"));
  }
  CaseResult onSim(const std::string& faults, const Json& params, const std::string& device = "gpu0") {
    const auto path = folder_.write("scenario.toml", scenarioText(faults));
    return plugin_.run(host_, "gemm", params, contextFor("sim", device, path.string()));
  }
  TempDir folder_;
  PluginLibrary plugin_{"compute"};
  RecordingHost host_;
};

TEST_F(ComputeGemm, MeasuresAndChecksOnThisCpu) {
  for (const char* dtype : {"f32", "f64"}) {
    RecordingHost host;
    const auto result = plugin_.run(host, "gemm", with(quick(), "dtype", dtype), contextFor("host", "cpu0"));
    ASSERT_EQ(result.ran, MUSTER_OK) << host.error;
    plugin_.expectDeclared(host, "gemm");
    EXPECT_EQ(host.value("gemm_wrong_elements"), 0);
    EXPECT_EQ(host.value("gemm_repeat_mismatches"), 0);
    EXPECT_LE(host.value("gemm_worst_error"), host.value("gemm_error_bound"));
    const Told rates = host.told("gemm_throughput").at(0);
    EXPECT_GE(rates.samples.size(), 2u);
    for (double rate : rates.samples) EXPECT_GT(rate, 0);
    EXPECT_FALSE(host.told("gemm_implementation").at(0).text.empty());
    EXPECT_FALSE(host.fractions.empty());
  }
}

TEST_F(ComputeGemm, TakesItsShapeFromMNK) {
  Json params = quick();
  params.update({{"m", 7}, {"n", 5}, {"k", 3}});
  ASSERT_EQ(onHost(params).ran, MUSTER_OK) << host_.error;
  EXPECT_EQ(host_.value("gemm_wrong_elements"), 0);
}

TEST_F(ComputeGemm, IsUnsupportedInATypeThatTheCpuLacks) {
  EXPECT_EQ(onHost(with(quick(), "dtype", "fp8_e4m3")).ran, MUSTER_UNSUPPORTED);
  EXPECT_NE(host_.error.find("fp8_e4m3"), std::string::npos);
  EXPECT_TRUE(host_.measurements.empty());
}

TEST_F(ComputeGemm, CallsAnUnknownAlgorithmABadParameter) {
  EXPECT_EQ(onHost(with(quick(), "algorithm", "cublas")).ran, MUSTER_BAD_PARAMETER);
  EXPECT_NE(host_.error.find("unknown algorithm \"cublas\""), std::string::npos);
}

TEST_F(ComputeGemm, FailsWhereTheMatricesDoNotFit) {
  EXPECT_EQ(onHost(with(quick(), "size", 131072)).ran, MUSTER_ERROR);
  EXPECT_NE(host_.error.find("out of memory: required"), std::string::npos) << host_.error;
  EXPECT_TRUE(host_.measurements.empty());
}

TEST_F(ComputeGemm, NamesTheDevicesWhenItsOwnIsNotThere) {
  const auto result = plugin_.run(host_, "gemm", quick(), contextFor("host", "cpu99"));
  EXPECT_EQ(result.opened, MUSTER_ERROR);
  EXPECT_NE(host_.error.find("no device \"cpu99\""), std::string::npos);
}

TEST_F(ComputeGemm, StopsSoonWhenItIsCancelled) {
  host_.cancelAfter = 2;
  EXPECT_EQ(onHost(with(quick(), "max_time", "1h")).ran, MUSTER_CANCELLED);
  EXPECT_TRUE(host_.told("gemm_throughput").empty());
}

TEST_F(ComputeGemm, MeasuresASimulatedDeviceInItsVirtualTime) {
  Json params = {{"size", 8192}, {"dtype", "bf16"}, {"min_time", "10s"}, {"max_time", "20s"}};
  ASSERT_EQ(onSim("", params).ran, MUSTER_OK) << host_.error;
  plugin_.expectDeclared(host_, "gemm");
  const Told rate = host_.told("gemm_throughput").at(0);
  EXPECT_NEAR(rate.samples.back(), 700e12, 20e12);
  EXPECT_GT(rate.time, 110);  // the session began at virtual second 100
  EXPECT_EQ(host_.value("gemm_wrong_elements"), 0);
  EXPECT_EQ(host_.value("gemm_repeat_mismatches"), 0);
}

TEST_F(ComputeGemm, WarmsAGpuUpUntilItsPowerHasSettledUnlessToldOtherwise) {
  Json params = quick();
  params.update({{"size", 1024}, {"dtype", "bf16"}, {"warmup", "5s"}});
  ASSERT_EQ(onSim("", params).ran, MUSTER_OK) << host_.error;
  EXPECT_GE(host_.value("gemm_warmup"), 2);
  EXPECT_LT(host_.value("gemm_warmup"), 3);
  RecordingHost brief;
  const auto path = folder_.write("scenario.toml", scenarioText(""));
  params["warmup"] = "300ms";
  ASSERT_EQ(plugin_.run(brief, "gemm", params, contextFor("sim", "gpu0", path.string())).ran, MUSTER_OK);
  EXPECT_LT(brief.value("gemm_warmup"), 1);
}

TEST_F(ComputeGemm, FindsSilentCorruption) {
  Json params = {{"size", 8192}, {"dtype", "bf16"}, {"comparisons", 6}};
  ASSERT_EQ(onSim(corruption("gemm", 3, 4096, 13), params).ran, MUSTER_OK) << host_.error;
  EXPECT_GT(host_.value("gemm_repeat_mismatches"), 0);
  EXPECT_NE(host_.told("gemm_first_fault").at(0).text.find("gpu0: bf16 8192x8192x8192"), std::string::npos);
  EXPECT_EQ(host_.logs.size(), 1u);
}

TEST_F(ComputeGemm, FindsResultsThatWereWrongForAWhile) {
  const std::string passing = corruption("gemm", 1, 4096, 13) + "from = 100.5\nuntil = 100.6\n";
  ASSERT_EQ(onSim(passing, {{"size", 8192}, {"dtype", "bf16"}}).ran, MUSTER_OK) << host_.error;
  EXPECT_GT(host_.value("gemm_repeat_mismatches"), 0);
}

TEST_F(ComputeGemm, FindsResultsThatAreAlwaysWrong) {
  Json params = {{"size", 8192}, {"dtype", "bf16"}};
  ASSERT_EQ(onSim(corruption("gemm", 1, 4096, 13), params).ran, MUSTER_OK) << host_.error;
  EXPECT_GT(host_.value("gemm_wrong_elements"), 0);
  EXPECT_TRUE(std::isfinite(host_.value("gemm_worst_error")));
}

TEST_F(ComputeGemm, LeavesTheNeighbourOfASickDeviceAlone) {
  Json params = {{"size", 8192}, {"dtype", "bf16"}};
  ASSERT_EQ(onSim(corruption("gemm", 1, 4096, 13), params, "gpu1").ran, MUSTER_OK) << host_.error;
  EXPECT_EQ(host_.value("gemm_wrong_elements"), 0);
}

}  // namespace
}  // namespace muster::testing
