// SPDX-License-Identifier: Apache-2.0
// topology.conf and its host lists, well-formed and hostile.
#include "plugins/ring/solver/topology_file.h"

#include <gtest/gtest.h>

namespace muster::ring {
namespace {

using Names = std::vector<std::string>;

Names expand(const std::string& text) {
  const auto names = expandHostList(text);
  EXPECT_TRUE(names.ok()) << (names.ok() ? "" : names.error().text());
  return names.ok() ? *names : Names();
}

TEST(HostList, Expands) {
  EXPECT_EQ(expand("n1"), Names{"n1"});
  EXPECT_EQ(expand("n[08-10,3],login"), (Names{"n08", "n09", "n10", "n3", "login"}));
  EXPECT_EQ(expand("rack[1-2]-a"), (Names{"rack1-a", "rack2-a"}));
}

TEST(HostList, RefusesWhatItCannotRead) {
  for (const char* text : {"", "n[", "n]1[", "n[1-", "n[5-2]", "n[a]", "n[1-99999999]", "a,,b", "n[1][2]",
                           "n[9999999999999]", "n[-1]"}) {
    const auto names = expandHostList(text, 1000);
    ASSERT_FALSE(names.ok()) << text;
    EXPECT_NE(names.error().text().find("host list"), std::string::npos) << names.error().text();
  }
}

TEST(TopologyFile, GivesEachNodeItsLeaf) {
  const auto topology = parseTopology(
      "# two leaves\nSwitchName=l0 Nodes=n[0-1] LinkSpeed=1\nswitchname=l1\tNodes=n2,n[7-9]\n\n"
      "SwitchName=spine Switches=l[0-1]\n",
      "topology.conf", {"n2", "n0", "n1"});
  ASSERT_TRUE(topology.ok()) << topology.error().text();
  EXPECT_EQ(topology->leafOf, (std::vector<int>{1, 0, 0}));
  EXPECT_EQ(topology->names, (Names{"l0", "l1"}));
}

std::string problem(const std::string& text) {
  const auto topology = parseTopology(text, "topology.conf", {"n0", "n1"});
  return topology.ok() ? "" : topology.error().text();
}

TEST(TopologyFile, SaysWhichLineIsWrong) {
  EXPECT_EQ(problem("SwitchName=l0 Nodes=n0\n"),
            "topology.conf: no leaf switch has node n1; add it to the Nodes= of its switch");
  EXPECT_NE(problem("SwitchName=a Nodes=n[0-1]\nSwitchName=b Nodes=n1\n")
                .find("topology.conf:2: node n1 hangs on leaf a"),
            std::string::npos);
  EXPECT_NE(problem("Nodes=n[0-1]\n").find("topology.conf:1: Nodes= without SwitchName="), std::string::npos);
  EXPECT_NE(problem("\nSwitchName=a Nodes=n[0-\n").find("topology.conf:2"), std::string::npos);
  EXPECT_NE(problem("hello\n").find("KEY=VALUE"), std::string::npos);
}

}  // namespace
}  // namespace muster::ring
