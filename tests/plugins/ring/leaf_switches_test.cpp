// SPDX-License-Identifier: Apache-2.0
// Each node of a group gets its leaf switch; lines that contradict each other are named.
#include "plugins/ring/solver/leaf_switches.h"

#include <gtest/gtest.h>

namespace muster::ring {
namespace {

using Names = std::vector<std::string>;

TEST(LeafSwitches, GivesEachNodeItsLeaf) {
  const auto topology = leafSwitches(
      "# two leaves\nSwitchName=l0 Nodes=n[0-1] LinkSpeed=1\nswitchname=l1\tNodes=n2,n[7-9]\n\n"
      "SwitchName=spine Switches=l[0-1]\n",
      "topology.conf", {"n2", "n0", "n1"});
  ASSERT_TRUE(topology.ok()) << topology.error().text();
  EXPECT_EQ(topology->leafOf, (std::vector<int>{1, 0, 0}));
  EXPECT_EQ(topology->names, (Names{"l0", "l1"}));
}

std::string problem(const std::string& text) {
  const auto topology = leafSwitches(text, "topology.conf", {"n0", "n1"});
  return topology.ok() ? "" : topology.error().text();
}

TEST(LeafSwitches, SaysWhichLineIsWrong) {
  EXPECT_EQ(problem("SwitchName=l0 Nodes=n0\n"),
            "topology.conf: no leaf switch has node n1; add it to the Nodes= of its switch");
  EXPECT_NE(problem("SwitchName=a Nodes=n[0-1]\nSwitchName=b Nodes=n1\n")
                .find("topology.conf:2: node n1 is on leaf a"),
            std::string::npos);
}

}  // namespace
}  // namespace muster::ring
