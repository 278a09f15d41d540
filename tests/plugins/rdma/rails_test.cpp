// SPDX-License-Identifier: Apache-2.0
// Which node meets which, and where.
#include "plugins/rdma/rails.h"

#include <gtest/gtest.h>

#include <set>

namespace muster::rdma {
namespace {

class RingRounds : public ::testing::TestWithParam<int> {};

TEST_P(RingRounds, LetEveryNodeServeOnceAndBeClientOnceAndNeverBothAtOnce) {
  const int nodes = GetParam();
  const auto rounds = ringRounds(nodes);
  EXPECT_EQ(rounds.size(), nodes % 2 == 0 ? 2u : 3u);
  std::vector<int> served(static_cast<size_t>(nodes), 0);
  std::vector<int> called(static_cast<size_t>(nodes), 0);
  for (const auto& round : rounds) {
    std::set<int> busy;
    for (const NodePair& pair : round) {
      EXPECT_NE(pair.server, pair.client);
      ++served[static_cast<size_t>(pair.server)];
      ++called[static_cast<size_t>(pair.client)];
      for (const int node : {pair.server, pair.client}) EXPECT_TRUE(busy.insert(node).second) << node;
    }
  }
  EXPECT_EQ(served, std::vector<int>(static_cast<size_t>(nodes), 1));
  EXPECT_EQ(called, served);
}

INSTANTIATE_TEST_SUITE_P(Rails, RingRounds, ::testing::Values(2, 3, 4, 5, 8, 33, 1024));

/// Two sockets with two GPUs each, gpu0 to gpu3.
std::vector<DeviceInfo> fourGpus() {
  std::vector<DeviceInfo> gpus(4);
  for (int i = 0; i < 4; ++i) {
    gpus[static_cast<size_t>(i)].index = i;
    gpus[static_cast<size_t>(i)].id = "gpu" + std::to_string(i);
    gpus[static_cast<size_t>(i)].numaNode = i / 2;
  }
  return gpus;
}
RdmaPort portOf(const std::string& device, int numaNode) {
  RdmaPort port;
  port.device = device;
  port.numaNode = numaNode;
  return port;
}
std::vector<std::string> ids(const std::vector<NearGpu>& gpus) {
  std::vector<std::string> all;
  for (const NearGpu& gpu : gpus) all.push_back(gpu.id + " " + gpu.distance);
  return all;
}

/// On one NUMA node and in another order than the GPUs: turns would pair each with the other switch's.
TEST(NearestGpus, ArePairedByPcieSwitch) {
  const Json topology = {
      {{"device", "gpu0"}, {"near", {{"mlx5_0", "PXB"}, {"mlx5_1", "PIX"}, {"mlx5_2", "SYS"}}}},
      {{"device", "gpu1"}, {"near", {{"mlx5_0", "PIX"}, {"mlx5_1", "PXB"}, {"mlx5_2", "SYS"}}}},
      {{"device", "gpu2"}, {"near", {{"mlx5_0", "SYS"}, {"mlx5_1", "SYS"}, {"mlx5_2", "NODE"}}}},
      {{"device", "gpu3"}, {"near", {{"mlx5_0", "SYS"}, {"mlx5_1", "SYS"}, {"mlx5_2", "PHB"}}}}};
  const auto near =
      nearestGpus({portOf("mlx5_0", 0), portOf("mlx5_1", 0), portOf("mlx5_2", 1)}, fourGpus(), topology);
  EXPECT_EQ(ids(near), (std::vector<std::string>{"gpu1 PIX", "gpu0 PIX", "gpu3 PHB"}));
  EXPECT_EQ(near[2].index, 3);
}

TEST(NearestGpus, TakeTurnsWhereTheyAreEquallyNear) {
  const std::vector<RdmaPort> ports = {portOf("a", 1), portOf("b", 1), portOf("c", 1), portOf("d", 0),
                                       portOf("e", -1)};
  EXPECT_EQ(ids(nearestGpus(ports, fourGpus(), Json::array())),
            (std::vector<std::string>{"gpu2 NODE", "gpu3 NODE", "gpu2 NODE", "gpu0 NODE", "gpu1 SYS"}));
}

TEST(Rails, ANodeAloneHasNoPairs) {
  EXPECT_TRUE(ringRounds(1).empty());
}

TEST(Rails, OwnAddressIsThatOfTheInterface) {
  const auto address = ownAddress("lo");
  ASSERT_TRUE(address.ok()) << address.error().text();
  EXPECT_EQ(*address, "127.0.0.1");
  EXPECT_FALSE(ownAddress("").value().empty());
  const auto missing = ownAddress("ib7");
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().message.find("\"ib7\""), std::string::npos);
}

}  // namespace
}  // namespace muster::rdma
