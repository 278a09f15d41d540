// SPDX-License-Identifier: Apache-2.0
// NUMA nodes of made-up machines and of this one.
#include "kernels/host/inventory/topology.h"

#include <gtest/gtest.h>

#include "kernels/host/inventory/cpu.h"

namespace muster {
namespace {

constexpr const char* kTwoSockets = "package:2 [numa(memory=1073741824)] l3:2(size=33554432) core:4 pu:2";

std::vector<int> firstCpus(int count) {
  std::vector<int> cpus;
  for (int i = 0; i < count; ++i) cpus.push_back(i);
  return cpus;
}

TEST(Topology, DescribesEveryNode) {
  const auto topology = readTopology(firstCpus(32), kTwoSockets);
  ASSERT_TRUE(topology.ok()) << topology.error().text();
  ASSERT_EQ(topology->nodes.size(), 2u);
  EXPECT_EQ(topology->packages, 2);
  EXPECT_EQ(topology->nodes[1].index, 1);
  EXPECT_EQ(topology->nodes[1].cpus.size(), 16u);
  EXPECT_EQ(topology->nodes[1].cores, 8);
  EXPECT_EQ(topology->nodes[1].memoryBytes, 1073741824u);
  EXPECT_EQ(topology->nodes[1].cacheBytes, 2u * 33554432u);
}

TEST(Topology, HonoursTheAffinity) {
  const auto topology = readTopology({2, 3, 4}, kTwoSockets);
  ASSERT_TRUE(topology.ok());
  ASSERT_EQ(topology->nodes.size(), 1u);
  EXPECT_EQ(topology->nodes[0].cpus, (std::vector<int>{2, 3, 4}));
  EXPECT_EQ(topology->nodes[0].cores, 2);
  EXPECT_EQ(topology->nodes[0].cacheBytes, 33554432u);
}

TEST(Topology, WithoutAProcessorOfOursThereIsNoDevice) {
  EXPECT_EQ(readTopology({900}, kTwoSockets).error().code, ErrorCode::kNotFound);
}

TEST(Topology, AMachineThatHwlocCannotReadIsAnError) {
  EXPECT_FALSE(readTopology({0}, "nonsense:").ok());
}

TEST(Topology, ThisMachineHasANodeWithOurProcessors) {
  const auto topology = readTopology(affinity());
  ASSERT_TRUE(topology.ok()) << topology.error().text();
  size_t cpus = 0;
  for (const NumaNode& node : topology->nodes) cpus += node.cpus.size();
  EXPECT_EQ(cpus, affinity().size());
}

}  // namespace
}  // namespace muster
