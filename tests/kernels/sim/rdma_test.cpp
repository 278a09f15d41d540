// SPDX-License-Identifier: Apache-2.0
// Simulated HCAs: figures, faults, and that they repeat themselves.
#include <gtest/gtest.h>

#include "kernels/sim/sim_inventory.h"
#include "kernels/sim/sim_rdma.h"
#include "tests/kernels/sim/small_scenario.h"

namespace muster::sim {
namespace {

std::string rdma(const std::string& faults = "") {
  return R"(
[rdma]
count = 4
line_rate = "50 GB/s"
bandwidth = "48 GB/s"
latency = "2us"
loopback_latency = "1us"
noise = 0
spread = 0
)" + faults;
}

SimRdma openRdma(const std::string& faults, double start = 0, int node = 0) {
  return {smallScenario(rdma(faults)), node, 7, std::make_shared<double>(start)};
}

RdmaTransfer on(const std::string& device, RdmaMethod method = RdmaMethod::kWriteBandwidth) {
  RdmaTransfer transfer;
  transfer.device = device;
  transfer.method = method;
  return transfer;
}

class NoMeeting : public RdmaMeeting {
 public:
  Status announce(int) override {
    return Error{ErrorCode::kInternal, "simulated ranks exchange no message", ""};
  }
  Result<std::pair<std::string, int>> await(double) override { return announce(0).error(); }
};

std::string problemsOf(const std::string& text) {
  const auto scenario = parseScenario(smallScenarioText(text), "s.toml");
  return scenario.ok() ? "" : scenario.error().text();
}

TEST(SimRdma, ReachesTheScenariosFiguresAndPassesItsTime) {
  SimRdma node = openRdma("");
  EXPECT_DOUBLE_EQ(node.loopback(on("mlx5_1"))->bandwidth, 48e9);
  EXPECT_DOUBLE_EQ(node.now(), 2);
  EXPECT_DOUBLE_EQ(node.loopback(on("mlx5_1", RdmaMethod::kSendLatency))->latency, 1e-6);
  EXPECT_NEAR(node.now(), 2.002, 1e-9);
  NoMeeting meeting;
  EXPECT_DOUBLE_EQ(node.pair(on("mlx5_1", RdmaMethod::kSendLatency), {1, true}, meeting)->latency, 2e-6);
}

TEST(SimRdma, TellsItsPorts) {
  const auto ports = openRdma("").ports();
  ASSERT_TRUE(ports.ok());
  ASSERT_EQ(ports->size(), 4u);
  EXPECT_EQ(ports->at(3).name(), "mlx5_3/1");
  EXPECT_TRUE(ports->at(3).active());
  EXPECT_DOUBLE_EQ(ports->at(3).bytesPerSecond, 50e9);
  EXPECT_EQ(ports->at(3).rate, "400 Gb/sec");
}

TEST(SimRdma, APcieFaultIsToldOfItsHcaAlone) {
  const std::string fault = "[[rdma.fault]]\nkind = \"pcie\"\nhca = 2\nlanes = 8\ngeneration = 4\n";
  const auto readings = pcieReadings(*openRdma(fault).ports());
  ASSERT_EQ(readings.size(), 4u);
  EXPECT_DOUBLE_EQ(readings[1].value, 1);
  EXPECT_DOUBLE_EQ(readings[2].value, 0.25);
  EXPECT_EQ(readings[2].text, "x8 at 16 GT/s of x16 at 32 GT/s");
  const std::string none = "[[rdma.fault]]\nkind = \"pcie\"\nhca = 2\nlanes = 16\n";
  EXPECT_NE(problemsOf(rdma(none)).find("fewer `lanes`"), std::string::npos);
}

TEST(SimRdma, HasNoPortsUnlessTheScenarioSaysSo) {
  SimRdma node(smallScenario(""), 0, 7, std::make_shared<double>(0));
  EXPECT_TRUE(node.ports()->empty());
}

TEST(SimRdma, ASlowHcaSlowsBothEndsOfAPairOnItsRailOnly) {
  const std::string slow = "[[rdma.fault]]\nkind = \"slow\"\nhca = 2\nnode = 1\nfactor = 0.5\n";
  SimRdma healthy = openRdma(slow, 0, 0);
  NoMeeting meeting;
  EXPECT_DOUBLE_EQ(healthy.loopback(on("mlx5_2"))->bandwidth, 48e9) << "the fault is the other node's";
  EXPECT_DOUBLE_EQ(healthy.pair(on("mlx5_2"), {1, true}, meeting)->bandwidth, 24e9);
  EXPECT_DOUBLE_EQ(healthy.pair(on("mlx5_1"), {1, true}, meeting)->bandwidth, 48e9);
  EXPECT_DOUBLE_EQ(openRdma(slow, 0, 1).loopback(on("mlx5_2"))->bandwidth, 24e9);
}

/// A NIC and a link are the same parts, whatever uses them.
TEST(SimRdma, SlowNicsAndLinksOfTheNetworkSlowItToo) {
  NoMeeting meeting;
  const std::string nic = "[[fault]]\nkind = \"slow_nic\"\nrail = 2\nnode = 1\nfactor = 0.5\n";
  EXPECT_DOUBLE_EQ(openRdma(nic, 0, 0).pair(on("mlx5_2"), {1, true}, meeting)->bandwidth, 24e9);
  EXPECT_DOUBLE_EQ(openRdma(nic, 0, 0).pair(on("mlx5_1"), {1, true}, meeting)->bandwidth, 48e9);
  EXPECT_DOUBLE_EQ(openRdma(nic, 0, 1).loopback(on("mlx5_2"))->bandwidth, 24e9);
  const std::string link = "[[fault]]\nkind = \"slow_link\"\nnode = 0\npeer_node = 1\nfactor = 0.5\n";
  EXPECT_DOUBLE_EQ(openRdma(link, 0, 0).pair(on("mlx5_2"), {1, true}, meeting)->bandwidth, 24e9);
  EXPECT_DOUBLE_EQ(openRdma(link, 0, 0).pair(on("mlx5_2"), {2, true}, meeting)->bandwidth, 48e9);
  EXPECT_DOUBLE_EQ(openRdma(link, 0, 0).loopback(on("mlx5_2"))->bandwidth, 48e9);
}

TEST(SimRdma, ALinkThatGoesDownIsCountedAndEndsTransfers) {
  const std::string down = "[[rdma.fault]]\nkind = \"link_down\"\nhca = 0\nfrom = \"5s\"\nuntil = \"7s\"\n";
  SimRdma node = openRdma(down);
  EXPECT_TRUE(node.loopback(on("mlx5_0")).ok());
  EXPECT_EQ(node.counters(node.ports()->at(0))->values.at("link_downed"), 0u);
  EXPECT_TRUE(node.loopback(on("mlx5_0")).ok());
  EXPECT_FALSE(node.loopback(on("mlx5_0")).ok()) << "it goes down in the middle of this one";
  EXPECT_FALSE(node.ports()->at(0).active());
  EXPECT_TRUE(node.ports()->at(1).active());
  EXPECT_EQ(node.counters(node.ports()->at(0))->values.at("link_downed"), 1u);
  node.sleep(2);
  EXPECT_TRUE(node.ports()->at(0).active()) << "it came back, but the counter tells";
  EXPECT_EQ(node.counters(node.ports()->at(0))->values.at("link_downed"), 1u);
}

TEST(SimRdma, CountsPlantedErrorsFromTheirMomentOn) {
  const std::string errors =
      "[[rdma.fault]]\nkind = \"errors\"\nhca = 3\nat = \"10s\"\nsymbol_errors = 40\nretransmits = 2\n";
  SimRdma node = openRdma(errors);
  const RdmaPort port = node.ports()->at(3);
  EXPECT_EQ(node.counters(port)->values.at("symbol_errors"), 0u);
  node.sleep(10);
  EXPECT_EQ(node.counters(port)->values.at("symbol_errors"), 40u);
  EXPECT_EQ(node.counters(port)->values.at("retransmits"), 2u);
  EXPECT_EQ(node.counters(port)->values.at("receive_errors"), 0u);
}

TEST(SimRdma, ItsInventoryShowsPortsAndCounters) {
  const auto scenario = smallScenario(rdma("[[rdma.fault]]\nkind = \"link_down\"\nhca = 1\nfrom = \"5s\"\n"));
  SimInventory inventory(scenario, buildUnits(scenario, 0, 0), 0, 1, 0);
  const auto node = inventory.node();
  ASSERT_TRUE(node.ok());
  EXPECT_EQ((*node)["nics"].size(), 4u);
  EXPECT_EQ((*node)["nics"][1]["name"], "mlx5_1/1");
  const auto countAt = [&](double at) {
    const Readings readings = *inventory.health(at, "memory");
    for (const Reading& reading : readings.values)
      if (reading.name == "rdma_link_downed" && reading.labels.at("port") == "mlx5_1/1") return reading.value;
    return -1.0;
  };
  EXPECT_EQ(countAt(4), 0);
  EXPECT_EQ(countAt(6), 1);
}

TEST(SimRdma, RepeatsItselfAndVariesWithTheSeed) {
  const auto scenario = smallScenario(
      "\n[rdma]\ncount = 2\nline_rate = \"50 GB/s\"\nbandwidth = \"48 GB/s\"\nnoise = 0.01\nspread = 0.01\n");
  const auto figure = [&](uint64_t seed) {
    return SimRdma(scenario, 0, seed, std::make_shared<double>(0)).loopback(on("mlx5_0"))->bandwidth;
  };
  EXPECT_EQ(figure(1), figure(1));
  EXPECT_NE(figure(1), figure(2));
  for (uint64_t seed = 0; seed < 500; ++seed)
    EXPECT_LE(figure(seed), 50e9) << "nothing is faster than its line";
}

TEST(RdmaModel, RefusesMistakesWithTheirPlace) {
  EXPECT_NE(problemsOf("[rdma]\ncount = 2\n").find("line_rate"), std::string::npos);
  EXPECT_NE(
      problemsOf(rdma("[[rdma.fault]]\nkind = \"link_dwon\"\nhca = 0\n")).find("did you mean \"link_down\""),
      std::string::npos);
  EXPECT_NE(problemsOf(rdma("[[rdma.fault]]\nkind = \"slow\"\nhca = 4\nfactor = 0.5\n")).find("hca"),
            std::string::npos);
  EXPECT_NE(problemsOf(rdma("[[rdma.fault]]\nkind = \"errors\"\nhca = 0\n")).find("needs a counter"),
            std::string::npos);
  EXPECT_NE(problemsOf(rdma("[[rdma.fault]]\nkind = \"link_down\"\nhca = 0\nfactor = 0.5\n")).find("factor"),
            std::string::npos);
  EXPECT_NE(problemsOf(rdma("lnk = 1\n")).find("lnk"), std::string::npos);
}

}  // namespace
}  // namespace muster::sim
