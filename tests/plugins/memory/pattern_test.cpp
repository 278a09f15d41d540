// SPDX-License-Identifier: Apache-2.0
// memory.pattern over the C border: healthy memory, and a flipped bit that it must name.
#include <gtest/gtest.h>

#include "tests/plugins/recording_host.h"
#include "tests/plugins/scenario.h"

namespace muster::testing {
namespace {

class MemoryPattern : public ::testing::Test {
 protected:
  CaseResult onHost(const Json& params) {
    return plugin_.run(host_, "pattern", params, contextFor("host", "cpu0"));
  }
  CaseResult onSim(const std::string& faults, const Json& params) {
    const auto path = folder_.write("scenario.toml", scenarioText(faults));
    return plugin_.run(host_, "pattern", params, contextFor("sim", "gpu0", path.string()));
  }
  TempDir folder_;
  PluginLibrary plugin_{"memory"};
  RecordingHost host_;
};

TEST_F(MemoryPattern, FindsNothingInThisMemory) {
  const Json params = {{"bytes", "1 MiB"},
                       {"passes", 2},
                       {"patterns",
                        {"zeros", "ones", "checkerboard", "inverse_checkerboard", "walking_one",
                         "walking_zero", "address", "inverse_address", "random"}}};
  ASSERT_EQ(onHost(params).ran, MUSTER_OK) << host_.error;
  plugin_.expectDeclared(host_, "pattern");
  EXPECT_EQ(host_.value("pattern_errors"), 0);
  EXPECT_EQ(host_.value("pattern_bytes"), 1 << 20);
  EXPECT_EQ(host_.value("pattern_sweeps"), 18);
  EXPECT_TRUE(host_.told("pattern_first_error").empty());
}

TEST_F(MemoryPattern, NamesDeviceOffsetAndBit) {
  ASSERT_EQ(onSim(corruption("pattern", 1, 4096, 17), {{"bytes", "1 GiB"}, {"patterns", {"zeros"}}}).ran,
            MUSTER_OK)
      << host_.error;
  plugin_.expectDeclared(host_, "pattern");
  EXPECT_GT(host_.value("pattern_errors"), 0);
  const std::string text = host_.told("pattern_first_error").at(0).text;
  EXPECT_NE(text.find("gpu0: pattern zeros, pass 1"), std::string::npos) << text;
  EXPECT_NE(text.find("offset 0x1000 "), std::string::npos) << text;
  EXPECT_NE(text.find("expected 0x0000000000000000, found 0x0000000000020000, flipped bits 17"),
            std::string::npos)
      << text;
  EXPECT_EQ(host_.logs, std::vector<std::string>{text});
}

TEST_F(MemoryPattern, CountsOffsetsOverAllParts) {
  ASSERT_EQ(onSim(corruption("pattern", 3, 4096, 17), {{"bytes", "4 GiB"}, {"patterns", {"address"}}}).ran,
            MUSTER_OK)
      << host_.error;
  const std::string text = host_.told("pattern_first_error").at(0).text;
  EXPECT_NE(text.find("offset 0x80001000 "), std::string::npos) << text;  // the third GiB
}

TEST_F(MemoryPattern, TestsAShareOfTheFreeMemory) {
  ASSERT_EQ(onSim("", {{"fraction", "50%"}, {"patterns", {"ones"}}}).ran, MUSTER_OK) << host_.error;
  EXPECT_NEAR(host_.value("pattern_bytes"), 40e9, 1e9);
}

TEST_F(MemoryPattern, FailsWhereTheMemoryIsNotThere) {
  EXPECT_EQ(onHost({{"bytes", "16 TiB"}}).ran, MUSTER_ERROR);
  EXPECT_NE(host_.error.find("out of memory"), std::string::npos) << host_.error;
  EXPECT_TRUE(host_.measurements.empty());
}

TEST_F(MemoryPattern, LogsABoundedNumberOfErrors) {
  ASSERT_EQ(onSim(corruption("pattern", 1, 4096, 17), {{"bytes", "1 GiB"}, {"passes", 50}}).ran, MUSTER_OK);
  EXPECT_EQ(host_.logs.size(), 16u);
  EXPECT_EQ(host_.value("pattern_errors"), 50 * 7);
}

TEST_F(MemoryPattern, StopsSoonWhenItIsCancelled) {
  host_.cancelAfter = 1;
  EXPECT_EQ(onHost({{"bytes", "1 MiB"}}).ran, MUSTER_CANCELLED);
  EXPECT_TRUE(host_.measurements.empty());
}

}  // namespace
}  // namespace muster::testing
