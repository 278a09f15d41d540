// SPDX-License-Identifier: Apache-2.0
// compute.best over the C border: many shapes, the best of them, wrong results, shapes that are none.
#include <gtest/gtest.h>

#include "tests/plugins/recording_host.h"
#include "tests/plugins/scenario.h"

namespace muster::testing {
namespace {

class ComputeBest : public ::testing::Test {
 protected:
  CaseResult onSim(const std::string& faults, const Json& params) {
    const auto path = folder_.write("scenario.toml", scenarioText(faults));
    return plugin_.run(host_, "best", params, contextFor("sim", "gpu0", path.string()));
  }
  TempDir folder_;
  PluginLibrary plugin_{"compute"};
  RecordingHost host_;
};

TEST_F(ComputeBest, ReportsEachShapeAndTheBestOfThem) {
  ASSERT_EQ(onSim("", {{"dtype", "bf16"}, {"shapes", {"1024x1024x1024", "8192x4096x2048"}}}).ran, MUSTER_OK)
      << host_.error;
  plugin_.expectDeclared(host_, "best");
  EXPECT_EQ(host_.told("shape_throughput").size(), 2u);
  EXPECT_EQ(host_.told("best_throughput").size(), 1u);
  EXPECT_EQ(host_.value("best_wrong_elements"), 0);
}

TEST_F(ComputeBest, WorksOnThisCpu) {
  const Json params = {{"shapes", {"64x32x16", "96x96x96"}}, {"warmup", "10ms"}, {"time", "10ms"}};
  ASSERT_EQ(plugin_.run(host_, "best", params, contextFor("host", "cpu0")).ran, MUSTER_OK) << host_.error;
  EXPECT_EQ(host_.value("best_wrong_elements"), 0);
}

TEST_F(ComputeBest, CountsWrongResultsOfAnyShape) {
  ASSERT_EQ(onSim(corruption("gemm", 1, 4096, 3), {{"dtype", "bf16"}, {"shapes", {"1024x1024x1024"}}}).ran,
            MUSTER_OK)
      << host_.error;
  EXPECT_GT(host_.value("best_wrong_elements"), 0);
}

TEST_F(ComputeBest, RefusesWhatIsNotAShape) {
  for (const char* shape : {"8192", "1x2", "1x2x3x4", "ax2x3", "0x2x3", "1x2x-3", "1x2x3 ", ""}) {
    RecordingHost host;
    EXPECT_NE(plugin_.run(host, "best", {{"shapes", {shape}}}, contextFor("host", "cpu0")).ran, MUSTER_OK)
        << shape;
  }
}

}  // namespace
}  // namespace muster::testing
