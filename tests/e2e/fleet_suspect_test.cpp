// SPDX-License-Identifier: Apache-2.0
// A fault of each kind, planted in simulated nodes: `muster fleet` names what it is and nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/fleet_run.h"

namespace muster::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FleetSuspect : public ::testing::Test {
 protected:
  void expectOnly(const std::string& kind) {
    for (const char* other : {"group", "switch", "rail", "node", "link", "device"})
      if (other != kind) {
        EXPECT_THAT(run_.suspects(other), IsEmpty()) << other;
      }
  }
  FleetRun run_;
};

TEST_F(FleetSuspect, IsADeviceThatItsPeersName) {
  // 7% slow: within the limits of profile and plan, so nothing but its peers can tell.
  ASSERT_EQ(run_.simulate(10, slowFault("node = 3\ndevice = 5", 0.93)).exitCode, 0);
  const auto result = run_.judge(10);
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  EXPECT_THAT(run_.suspects("device"), ElementsAre("sim-node-0003 gpu5"));
  expectOnly("device");
  const auto rejected = run_.judge(10, {"--reject-outliers"});
  EXPECT_EQ(rejected.exitCode, 1);
  EXPECT_THAT(rejected.out, HasSubstr("rejected sim-node-0003: statistical outlier"));
}

TEST_F(FleetSuspect, IsANodeWhoseDevicesAreAllSlow) {
  ASSERT_EQ(run_.simulate(20, slowNode("node = 4", 0.92)).exitCode, 0);
  const auto result = run_.judge(20);
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  EXPECT_THAT(run_.suspects("node"), ElementsAre("sim-node-0004"));
  expectOnly("node");
}

TEST_F(FleetSuspect, IsALinkBetweenTwoDevices) {
  ASSERT_EQ(run_.simulate(6, "").exitCode, 0);
  std::filesystem::remove_all(run_.path() / "run/sim-node-0001");
  ASSERT_EQ(run_.simulate(1, "\n[[fault]]\nkind = \"slow_link\"\ndevice = 2\npeer_device = 5\nfactor = 0.5\n",
                          {"--nnodes", "6", "--node-rank", "1"}, "run/sim-node-0001")
                .exitCode,
            1);
  const auto result = run_.judge(6);
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  EXPECT_THAT(run_.suspects("link"), ElementsAre("sim-node-0001 gpu2-gpu5"));
  EXPECT_THAT(result.out, HasSubstr("rejected sim-node-0001"));
}

TEST_F(FleetSuspect, IsALinkBetweenTwoNodesWhicheverNodeReportsIt) {
  const auto sick =
      runMuster({"run", plan("cluster.toml"), "--simulate", scenario("h100x8-cluster-slow-link"), "--set",
                 "burn.duration=30s", "--nodes", "4", "--plain", "--out", (run_.path() / "run").string()});
  ASSERT_EQ(sick.exitCode, 1) << sick.out << sick.err;
  EXPECT_EQ(run_.judge(4).exitCode, 1);
  EXPECT_THAT(run_.suspects("link"), ElementsAre("sim-node-0002 - sim-node-0003"));
  EXPECT_THAT(run_.suspects("device"), IsEmpty()) << "the reporting rank's device is not to blame";
  const Json fleet = run_.json();
  EXPECT_EQ(fleet["accounting"]["counts"]["deferred"], 0);
  EXPECT_GT(fleet["deferred_judged"], 0);
}

TEST_F(FleetSuspect, IsARackWhoseNodesAreSlow) {
  std::string faults;
  for (int node = 0; node < 4; ++node) faults += slowNode("node = " + std::to_string(node), 0.85);
  ASSERT_EQ(run_.simulate(16, faults).exitCode, 1);
  const auto racks = run_.write("racks.txt", "rack1: sim-node-[0000-0003]\nrack2: sim-node-[0004-0015]\n");
  const auto result = run_.judge(16, {"--topology", racks.string()});
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  EXPECT_THAT(run_.suspects("switch"), ElementsAre("rack1"));
  EXPECT_THAT(run_.suspects("group"), IsEmpty());
  EXPECT_THAT(run_.suspects("device"), IsEmpty()) << "what all devices of a node fail is the node's";
  EXPECT_EQ(run_.suspects("node").size(), 4u);
  EXPECT_THAT(result.out, HasSubstr("4 of its 4 nodes are flagged"));
}

TEST_F(FleetSuspect, IsARailThatIsSlowOnEveryNode) {
  ASSERT_EQ(run_.simulate(10, slowFault("device = 3", 0.8)).exitCode, 1);
  const auto result = run_.judge(10);
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  EXPECT_THAT(run_.suspects("rail"), ElementsAre("gpu3"));
  EXPECT_THAT(run_.suspects("group"), IsEmpty());
  EXPECT_EQ(run_.suspects("device").size(), 10u);
}

TEST_F(FleetSuspect, IsTheWholeFleetWhereAllAreFifteenPercentSlow) {
  ASSERT_EQ(run_.simulate(6, slowNode("", 0.85)).exitCode, 1);
  const auto result = run_.judge(6);
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  EXPECT_EQ(run_.json()["coverage"]["states"]["rejected"], 6);
  EXPECT_THAT(run_.suspects("group"), Contains("h100-sxm5-80gb")) << "its median is behind its profile";
  EXPECT_THAT(run_.suspects("group"), Contains("gemm, compute.gemm_throughput"));
  expectOnly("group");
  EXPECT_THAT(result.out, HasSubstr("the expected value (686 TFLOP/s)"));
}

TEST_F(FleetSuspect, IsANodeByFiguresOfNoDevice) {
  ASSERT_EQ(run_.simulate(16, "").exitCode, 0);
  for (int i = 0; i < 16; ++i) {
    const auto file = run_.path() / "run" /
                      ("sim-node-00" + std::string(i < 10 ? "0" : "") + std::to_string(i)) / "record.json";
    auto record = readRecord(file);
    ASSERT_TRUE(record.ok()) << record.error().text();
    Measurement disk;
    disk.metric = "memory.host_bandwidth";
    disk.unit = "B/s";
    disk.direction = Direction::kHigher;
    disk.caseId = record->stages.back().cases.front().id;
    disk.samples = {(i == 7 ? 2.1e9 : 3e9) * (1 + 0.002 * (i % 3))};
    record->stages.back().measurements.push_back(disk);
    ASSERT_TRUE(writeRecord(recordText(*record), file).ok());
  }
  const auto result = run_.judge(16);
  EXPECT_THAT(run_.suspects("node"), ElementsAre("sim-node-0007")) << result.out << result.err;
  expectOnly("node");
}

}  // namespace
}  // namespace muster::testing
