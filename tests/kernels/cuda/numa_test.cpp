// SPDX-License-Identifier: Apache-2.0
// NUMA nodes from made-up trees, and real pages on this machine's first node.
#include "kernels/cuda/numa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include "tests/support/process.h"

namespace muster::cuda {
namespace {

using testing::TempDir;

class HostNodes : public ::testing::Test {
 protected:
  void node(int number, const std::string& distance) {
    tree_.write("sys/devices/system/node/node" + std::to_string(number) + "/distance", distance + "\n");
  }
  void twoSockets() {
    tree_.write("sys/devices/system/node/online", "0-1\n");
    tree_.write("sys/devices/system/node/has_memory", "0-1\n");
    node(0, "10 21");
    node(1, "21 10");
  }
  std::vector<std::pair<int, int>> seen(int own) {
    auto nodes = hostNodes(Root(tree_.path().string()), own);
    EXPECT_TRUE(nodes.ok());
    std::vector<std::pair<int, int>> pairs;
    for (const HostNode& node : *nodes) pairs.emplace_back(node.node, node.distance);
    return pairs;
  }
  TempDir tree_;
};
using Pairs = std::vector<std::pair<int, int>>;

TEST_F(HostNodes, BeginWithTheDevicesOwn) {
  twoSockets();
  EXPECT_EQ(seen(0), (Pairs{{0, 10}, {1, 21}}));
  EXPECT_EQ(seen(1), (Pairs{{1, 10}, {0, 21}}));
}

TEST_F(HostNodes, HaveNoDistanceWhereTheDevicesPlaceIsUnknown) {
  twoSockets();
  EXPECT_EQ(seen(-1), (Pairs{{0, 0}, {1, 0}}));
}

TEST_F(HostNodes, LeaveOutNodesWithoutMemoryAndThoseThatAreForbidden) {
  twoSockets();
  tree_.write("sys/devices/system/node/online", "0-2\n");
  tree_.write("proc/self/status", "Name:\tx\nMems_allowed_list:\t1\n");
  EXPECT_EQ(seen(0), (Pairs{{1, 10}}));  // all there is is near
}

TEST_F(HostNodes, AreOneOnAKernelWithoutNuma) {
  EXPECT_EQ(seen(-1), (Pairs{{0, 10}}));
}

TEST(PagesByNode, ReadsTheLineOfTheMapping) {
  const char* const text =
      "7f0000000000 default anon=3 dirty=3 N0=3 kernelpagesize_kB=4\n"
      "7f0000200000 bind:1 anon=512 dirty=512 N0=2 N1=510 kernelpagesize_kB=4\n";
  EXPECT_EQ(pagesByNode(text, 0x7f0000200000), (std::map<int, uint64_t>{{0, 2}, {1, 510}}));
  EXPECT_EQ(pagesByNode(text, 0x7f0000000000), (std::map<int, uint64_t>{{0, 3}}));
  EXPECT_TRUE(pagesByNode(text, 0x7f0000400000).empty());
  EXPECT_TRUE(pagesByNode("", 1).empty());
}

TEST(NumaPages, LieOnTheirNodeAndArePoisoned) {
  const auto nodes = hostNodes(Root(), -1);
  ASSERT_TRUE(nodes.ok());
  auto pages = NumaPages::map(3 << 20, nodes->front().node);
  ASSERT_TRUE(pages.ok()) << pages.error().text();
  EXPECT_GE(pages->bytes(), 3u << 20);
  EXPECT_EQ(static_cast<const unsigned char*>(pages->data())[(3 << 20) - 1], 0xff);
}

/// Neighbouring mappings merge into one line of numa_maps unless something keeps them apart.
TEST(NumaPages, AreFoundBesideTheirLikes) {
  const int node = hostNodes(Root(), -1)->front().node;
  std::vector<NumaPages> held;
  for (int i = 0; i < 8; ++i) {
    auto pages = NumaPages::map(2 << 20, node);
    ASSERT_TRUE(pages.ok()) << i << ": " << pages.error().text();
    held.push_back(std::move(*pages));
  }
}

TEST(NumaPages, RefuseANodeThatIsNotThere) {
  const auto pages = NumaPages::map(1 << 20, 777);
  if (access("/proc/self/numa_maps", R_OK) != 0) GTEST_SKIP() << "this kernel has no /proc/self/numa_maps";
  ASSERT_FALSE(pages.ok());
  EXPECT_THAT(pages.error().text(), ::testing::HasSubstr("expected pinned memory on NUMA node 777, found "));
}

TEST(NumaPages, SayThatTheHostHasNotSoMuch) {
  const auto pages = NumaPages::map(1ull << 56, 0);
  ASSERT_FALSE(pages.ok());
  EXPECT_THAT(pages.error().text(), ::testing::HasSubstr("the host has no 64 PiB to pin"));
}

}  // namespace
}  // namespace muster::cuda
