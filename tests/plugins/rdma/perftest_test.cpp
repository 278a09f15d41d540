// SPDX-License-Identifier: Apache-2.0
// rdma.perftest: every port measured, every failure named, nothing skipped in silence.
#include <gmock/gmock.h>

#include "tests/plugins/rdma/rdma_run.h"

namespace muster::testing {
namespace {

using ::testing::HasSubstr;

class RdmaPerftest : public RdmaRun {};

TEST_F(RdmaPerftest, MeasuresEveryPortAgainstItself) {
  hcas_.add("mlx5_0", "ok", 392, 1.8);
  hcas_.add("mlx5_1", "ok", 196, 3.6);
  ASSERT_EQ(onHost("perftest", {{"samples", 2}}).ran, MUSTER_OK) << host_.error;
  plugin_.expectDeclared(host_, "perftest");
  EXPECT_EQ(host_.value("port_count"), 2);
  EXPECT_DOUBLE_EQ(of("write_bandwidth", "mlx5_0/1"), 49e9);
  EXPECT_DOUBLE_EQ(of("line_rate_share", "mlx5_0/1"), 0.98);
  EXPECT_DOUBLE_EQ(of("line_rate_share", "mlx5_1/1"), 0.49);
  EXPECT_DOUBLE_EQ(of("send_latency", "mlx5_1/1"), 3.6e-6);
  EXPECT_EQ(host_.told("write_bandwidth").at(0).samples.size(), 2u);
  EXPECT_EQ(host_.told("write_bandwidth").at(0).labels.at("path"), "loopback");
  EXPECT_TRUE(host_.told("write_bandwidth_both_ways").empty());
}

TEST_F(RdmaPerftest, MeasuresBothWaysWhenAsked) {
  hcas_.add("mlx5_0", "ok", 400);
  ASSERT_EQ(onHost("perftest", {{"both_ways", true}, {"samples", 1}}).ran, MUSTER_OK) << host_.error;
  EXPECT_DOUBLE_EQ(of("write_bandwidth_both_ways", "mlx5_0/1"), 95e9);
}

TEST_F(RdmaPerftest, IsUnsupportedWithoutAnyHcaAndSaysWhatToDo) {
  EXPECT_EQ(onHost("perftest").ran, MUSTER_UNSUPPORTED);
  EXPECT_THAT(host_.error, HasSubstr("no RDMA device"));
  EXPECT_TRUE(host_.measurements.empty());
}

TEST_F(RdmaPerftest, FailsWhenANamedHcaIsMissing) {
  hcas_.add("mlx5_0");
  EXPECT_EQ(onHost("perftest", {{"hcas", {"mlx5_0", "mlx5_8"}}}).ran, MUSTER_ERROR)
      << "missing, not unsupported";
  EXPECT_THAT(host_.error, HasSubstr("\"mlx5_8\"; this node has mlx5_0/1"));
}

TEST_F(RdmaPerftest, UsesOnlyTheNamedOnes) {
  hcas_.add("mlx5_0", "crash");
  hcas_.add("mlx5_1");
  hcas_.add("mlx5_2");
  ASSERT_EQ(onHost("perftest", {{"hcas", {"mlx5_1", "mlx5_2/1"}}, {"samples", 1}}).ran, MUSTER_OK)
      << host_.error;
  EXPECT_EQ(host_.value("port_count"), 2);
}

TEST_F(RdmaPerftest, TellsOfAPortThatIsDownAndMeasuresTheOthers) {
  hcas_.add("mlx5_0");
  hcas_.add("mlx5_1");
  hcas_.set("mlx5_0", "state", "1: DOWN\n");
  ASSERT_EQ(onHost("perftest", {{"samples", 1}}).ran, MUSTER_OK) << host_.error;
  EXPECT_EQ(of("port_active", "mlx5_0/1"), 0);
  EXPECT_EQ(of("port_active", "mlx5_1/1"), 1);
  EXPECT_EQ(host_.told("write_bandwidth").size(), 1u);
  const auto* active = plugin_.spec().test("perftest")->metric("port_active");
  ASSERT_FALSE(active->standing.empty()) << "a port that is down fails in every plan";
}

TEST_F(RdmaPerftest, MeasuresTheOtherPortsWhenTheEngineFailsOnOne) {
  hcas_.add("mlx5_0", "crash");
  hcas_.add("mlx5_1");
  EXPECT_EQ(onHost("perftest", {{"samples", 1}}).ran, MUSTER_ERROR);
  EXPECT_THAT(host_.error, HasSubstr("mlx5_0/1"));
  EXPECT_THAT(host_.error, HasSubstr("SIGSEGV"));
  EXPECT_GT(of("write_bandwidth", "mlx5_1/1"), 0);
}

TEST_F(RdmaPerftest, NamesThePackageWhenTheEngineIsMissing) {
  hcas_.add("mlx5_0");
  std::filesystem::remove(hcas_.programs() + "/ib_write_bw");
  EXPECT_EQ(onHost("perftest").ran, MUSTER_ERROR);
  EXPECT_THAT(host_.error, HasSubstr("apt-get install perftest"));
}

TEST_F(RdmaPerftest, MeasuresANodeOfGpusToo) {
  hcas_.add("mlx5_0");
  ASSERT_EQ(onCuda("perftest", {{"samples", 1}}).ran, MUSTER_OK) << host_.error;
  EXPECT_GT(of("write_bandwidth", "mlx5_0/1"), 0);
}

TEST_F(RdmaPerftest, HasNoGpuMemoryOnTheHost) {
  hcas_.add("mlx5_0");
  EXPECT_EQ(onHost("perftest", {{"memory", "gpu"}}).ran, MUSTER_UNSUPPORTED);
  EXPECT_THAT(host_.error, HasSubstr("no GPU"));
}

TEST_F(RdmaPerftest, NeedsTwoNodesForPairs) {
  hcas_.add("mlx5_0");
  EXPECT_EQ(onHost("perftest", Json::object(), "cluster").ran, MUSTER_UNSUPPORTED);
  EXPECT_THAT(host_.error, HasSubstr("two nodes"));
}

TEST_F(RdmaPerftest, StopsSoonWhenItIsCancelled) {
  hcas_.add("mlx5_0", "hang");
  host_.cancelAfter = 5;
  EXPECT_EQ(onHost("perftest").ran, MUSTER_CANCELLED);
  EXPECT_TRUE(processesWith(hcas_.programs()).empty());
}

TEST_F(RdmaPerftest, SimulatesLoopbacksInVirtualTime) {
  ASSERT_EQ(onSim("perftest", "").ran, MUSTER_OK) << host_.error;
  plugin_.expectDeclared(host_, "perftest");
  EXPECT_EQ(host_.told("write_bandwidth").size(), 4u);
  EXPECT_GT(host_.measurements.back().time, 4 * 3 * 2) << "four ports, three samples, two seconds each";
}

TEST_F(RdmaPerftest, SimulatesGpuMemory) {
  ASSERT_EQ(onSim("perftest", "", {{"memory", "gpu"}}).ran, MUSTER_OK) << host_.error;
}

TEST_F(RdmaPerftest, ASlowHcaShowsInItsOwnFiguresOnly) {
  ASSERT_EQ(onSim("perftest", "[[rdma.fault]]\nkind = \"slow\"\nhca = 2\nfactor = 0.5\n").ran, MUSTER_OK);
  EXPECT_NEAR(of("line_rate_share", "mlx5_2/1"), 0.48, 0.02);
  EXPECT_NEAR(of("line_rate_share", "mlx5_1/1"), 0.96, 0.03);
}

TEST_F(RdmaPerftest, PairsEachRailWithTheNeighbourNodes) {
  const std::string slow = "[[rdma.fault]]\nkind = \"slow\"\nhca = 1\nnode = 2\nfactor = 0.5\n";
  ASSERT_EQ(onSim("perftest", slow, {{"samples", 1}}, "cluster", 3, 4).ran, MUSTER_OK) << host_.error;
  const auto told = host_.told("write_bandwidth");
  ASSERT_EQ(told.size(), 4u) << "node 3 is the client of node 2 alone; each pair is told once";
  for (const Told& one : told) {
    EXPECT_EQ(one.labels.at("path"), "pair");
    EXPECT_EQ(one.labels.at("peer"), "2");
    EXPECT_NEAR(one.samples[0], one.labels.at("port") == "mlx5_1/1" ? 24e9 : 48e9, 1e9)
        << one.labels.at("port");
  }
}

}  // namespace
}  // namespace muster::testing
