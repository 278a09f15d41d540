// SPDX-License-Identifier: Apache-2.0
// topology.conf and rack files, well-formed and not.
#include "runner/hosts/topology_file.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using Names = std::vector<std::string>;

TEST(TopologyFile, ReadsSwitchesInAnyCaseAndRacks) {
  const auto groups = parseTopology(
      "# two leaves\nSwitchName=l0 Nodes=n[0-1] LinkSpeed=1\nswitchname=l1\tNODES=n2,n[7-9]\r\n\n"
      "SwitchName=spine Switches=l[0-1]\nrack1: n[08-10]  # a rack\n",
      "topology.conf");
  ASSERT_TRUE(groups.ok()) << groups.error().text();
  ASSERT_EQ(groups->size(), 3u);
  EXPECT_EQ((*groups)[0].name, "l0");
  EXPECT_EQ((*groups)[0].nodes, (Names{"n0", "n1"}));
  EXPECT_EQ((*groups)[1].nodes, (Names{"n2", "n7", "n8", "n9"}));
  EXPECT_EQ((*groups)[1].line, 3u);
  EXPECT_EQ((*groups)[2].name, "rack1");
  EXPECT_EQ((*groups)[2].nodes, (Names{"n08", "n09", "n10"}));
}

TEST(TopologyFile, SaysWhichLineIsWrong) {
  const auto problem = [](const std::string& text) {
    const auto groups = parseTopology(text, "topology.conf");
    return groups.ok() ? "" : groups.error().text();
  };
  EXPECT_EQ(problem(""), "");
  EXPECT_NE(problem("Nodes=n[0-1]\n").find("topology.conf:1: found neither"), std::string::npos);
  EXPECT_NE(problem("SwitchName=a\n").find("topology.conf:1: found neither"), std::string::npos);
  EXPECT_NE(problem("\nSwitchName=a Nodes=n[0-\n").find("topology.conf:2"), std::string::npos);
  EXPECT_NE(problem("\n\nhello\n").find("topology.conf:3: found \"hello\""), std::string::npos);
}

}  // namespace
}  // namespace muster
