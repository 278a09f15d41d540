// SPDX-License-Identifier: Apache-2.0
// The plugin on simulated nodes: what each rank of a group tells, for each kind of planted fault.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "tests/plugins/recording_host.h"
#include "tests/plugins/scenario.h"
#include "tests/support/process.h"

namespace muster {
namespace {

constexpr const char* kNetwork = R"(
[network]
intra_bandwidth = "400 GB/s"
rail_bandwidth = "48 GB/s"
rails = 2
nodes_per_leaf = 2
noise = "1%"
)";

const testing::PluginLibrary& plugin() {
  static const testing::PluginLibrary library("ring");
  return library;
}

/// Rank `rank` of `nodes` simulated nodes with two devices each.
class RingPlugin : public ::testing::Test {
 protected:
  void plant(const std::string& faults) {
    scenario_ = folder_.path() / "scenario.toml";
    std::ofstream(scenario_) << testing::scenarioText(kNetwork + faults);
  }

  testing::CaseResult run(int rank, testing::RecordingHost& host, const Json& params = Json::object(),
                          int nodes = 8) {
    Json context = testing::contextFor("sim", "gpu" + std::to_string(rank % 2), scenario_.string());
    context["scope"] = "cluster";
    context["rank"] = rank;
    context["world_size"] = 2 * nodes;
    context["local_rank"] = rank % 2;
    context["local_size"] = 2;
    context["node"] = {{"rank", rank / 2}, {"count", nodes}, {"name", name(rank / 2)}};
    if (tellNames_)
      for (int node = 0; node < nodes; ++node) context["node"]["names"].push_back(name(node));
    return plugin().run(host, "ring", params, context);
  }

  /// The culprits that this rank tells, sorted.
  std::set<std::string> culprits(int rank, const Json& params = Json::object()) {
    testing::RecordingHost host;
    EXPECT_EQ(run(rank, host, params).ran, MUSTER_OK) << host.error;
    std::set<std::string> names;
    for (const auto& told : host.told("culprits")) {
      EXPECT_EQ(told.samples, std::vector<double>{told.labels.at("culprit") == "none" ? 0.0 : 1.0});
      names.insert(told.labels.at("culprit"));
    }
    return names;
  }

  [[nodiscard]] std::string name(int node) const {
    return names_.empty() ? "sim-node-000" + std::to_string(node) : names_[static_cast<size_t>(node)];
  }

  testing::TempDir folder_;
  std::filesystem::path scenario_;
  std::vector<std::string> names_;  ///< of the nodes; empty: as the runner names simulated ones
  bool tellNames_ = false;
};

using NameSet = std::set<std::string>;

TEST_F(RingPlugin, TellsWhatItDeclares) {
  plant("");
  testing::RecordingHost host;
  ASSERT_EQ(run(0, host).ran, MUSTER_OK) << host.error;
  plugin().expectDeclared(host, "ring");
  EXPECT_EQ(host.value("rounds"), 2);
  EXPECT_EQ(host.told("pair_bandwidth").size(), 8u * 3) << "eight pairs; two rails alone and both together";
  for (const auto& told : host.told("bandwidth")) {
    ASSERT_EQ(told.samples.size(), 1u);
    EXPECT_NEAR(told.samples[0], told.labels.at("rail") == "all" ? 96e9 : 48e9, 4e9);
  }
}

TEST_F(RingPlugin, NamesNobodyOnHealthyNodes) {
  plant("");
  for (int rank : {0, 1, 7}) EXPECT_EQ(culprits(rank), NameSet{"none"});
}

/// One device of one node is missing: the ring cannot pair its rails, and nobody else is named.
TEST_F(RingPlugin, NamesTheNodeThatHasFewerRanksThanOthers) {
  constexpr int kNodes = 4;
  for (int poor = 0; poor < kNodes; ++poor) {
    plant("[[fault]]\nkind = \"missing\"\nnode = " + std::to_string(poor) + "\ndevice = 1\n");
    Json ranks = Json::array();
    for (int node = 0; node < kNodes; ++node) ranks.push_back(node == poor ? 1 : 2);
    for (int rank = 0, node = 0; node < kNodes; rank += ranks[static_cast<size_t>(node++)].get<int>()) {
      testing::RecordingHost host;
      Json context = testing::contextFor("sim", "gpu0", scenario_.string());
      context["scope"] = "cluster";
      context["rank"] = rank;
      context["world_size"] = 2 * kNodes - 1;
      context["local_rank"] = 0;
      context["local_size"] = ranks[static_cast<size_t>(node)];
      context["node"] = {{"rank", node}, {"count", kNodes}, {"name", name(node)}, {"ranks", ranks}};
      const int ended = plugin().run(host, "ring", Json::object(), context).ran;
      EXPECT_EQ(ended == MUSTER_PEER_FAILED, node != poor) << ended << " " << host.error;
      EXPECT_NE(ended, MUSTER_OK);
      const std::string start = name(poor) + " has 1 ranks where others have 2;";
      EXPECT_NE(host.error.find(start), std::string::npos) << host.error;
      EXPECT_TRUE(host.told("culprits").empty());
    }
  }
}

TEST_F(RingPlugin, NamesASlowNodeToRankZeroAndToItself) {
  plant("[[fault]]\nkind = \"slow_nic\"\nnode = 5\nfactor = 0.7\n");
  EXPECT_EQ(culprits(0), NameSet{"node sim-node-0005"});
  EXPECT_EQ(culprits(10), NameSet{"node sim-node-0005"});
  EXPECT_EQ(culprits(11), NameSet{"none"}) << "one rank speaks for its node";
  EXPECT_EQ(culprits(8), NameSet{"none"}) << "a neighbour is well";
}

TEST_F(RingPlugin, TellsWhatDidNotLastAsUndecided) {
  plant("[[fault]]\nkind = \"slow_nic\"\nnode = 5\nfactor = 0.7\nuntil = \"105s\"\n");
  const auto undecided = [&](int rank) {
    testing::RecordingHost host;
    EXPECT_EQ(run(rank, host).ran, MUSTER_OK) << host.error;
    NameSet names;
    for (const auto& told : host.told("undecided")) names.insert(told.labels.at("culprit"));
    return names;
  };
  EXPECT_EQ(culprits(0), NameSet{"none"});
  EXPECT_EQ(undecided(0), NameSet{"sim-node-0005"});
  EXPECT_EQ(undecided(10), NameSet{"sim-node-0005"});
  EXPECT_EQ(undecided(8), NameSet{"none"});
}

TEST_F(RingPlugin, NamesARailToTheRankThatHasIt) {
  plant("[[fault]]\nkind = \"slow_nic\"\nnode = 3\nrail = 1\nfactor = 0.5\n");
  EXPECT_EQ(culprits(0), NameSet{"node sim-node-0003, rail 1"});
  EXPECT_EQ(culprits(7), NameSet{"node sim-node-0003, rail 1"});
  EXPECT_EQ(culprits(6), NameSet{"none"});
}

TEST_F(RingPlugin, NamesALinkToBothItsNodes) {
  plant("[[fault]]\nkind = \"slow_link\"\nnode = 2\npeer_node = 3\nfactor = 0.6\n");
  const NameSet link = {"link sim-node-0002 - sim-node-0003"};
  for (int rank : {0, 4, 6}) EXPECT_EQ(culprits(rank), link);
  EXPECT_EQ(culprits(8), NameSet{"none"});
}

TEST_F(RingPlugin, FindsALinkOfNodesThatTheRingNeverPairs) {
  plant("[[fault]]\nkind = \"slow_link\"\nnode = 1\npeer_node = 5\nfactor = 0.5\n");
  EXPECT_EQ(culprits(0, {{"coverage", "all"}}), NameSet{"link sim-node-0001 - sim-node-0005"});
  EXPECT_EQ(culprits(10, {{"coverage", "all"}}), NameSet{"link sim-node-0001 - sim-node-0005"});
  EXPECT_EQ(culprits(8, {{"coverage", "all"}}), NameSet{"none"});
}

TEST_F(RingPlugin, TellsWhichShareOfThePairsItMeasured) {
  plant("");
  testing::RecordingHost quick, all;
  ASSERT_EQ(run(0, quick).ran, MUSTER_OK) << quick.error;
  EXPECT_NEAR(quick.value("pair_coverage"), 8.0 / 28, 1e-9);
  ASSERT_EQ(run(0, all, {{"coverage", "all"}}).ran, MUSTER_OK) << all.error;
  EXPECT_EQ(all.value("pair_coverage"), 1);
  EXPECT_EQ(all.value("rounds"), 7);
}

TEST_F(RingPlugin, CallsALinkTheSameOnAllRanksWhateverTheNodesAreCalled) {
  plant("[[fault]]\nkind = \"slow_link\"\nnode = 2\npeer_node = 3\nfactor = 0.6\n");
  const std::vector<std::vector<std::string>> fleets = {
      {"node1", "node2", "node3", "node4", "node5", "node6", "node7",
       "node8"},  // from 1, as Slurm's often do
      {"rack3", "rack1", "rack2", "rack0", "a-7", "gpu", "b12",
       "sim-node-0001"},                                                       // some end with another's rank
      {"alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"},  // none ends with a number
      {"c0n10", "c0n11", "c0n12", "c0n13", "c1n10", "c1n11", "c1n12", "c1n13"}};
  for (const auto& names : fleets)
    for (const bool told : {true, false}) {
      names_ = names;
      tellNames_ = told;
      const std::string link =
          told ? "link " + names[2] + " - " + names[3] : "link node-rank-2 - node-rank-3";
      for (const int rank : {0, 4, 6}) EXPECT_EQ(culprits(rank), NameSet{link}) << "rank " << rank;
      for (const int rank : {2, 8, 12}) EXPECT_EQ(culprits(rank), NameSet{"none"}) << "rank " << rank;
    }
}

TEST_F(RingPlugin, NamesAnUplinkByItsTopologyFile) {
  plant("[[fault]]\nkind = \"slow_uplink\"\nleaf = 1\nfactor = 0.6\n");
  const auto file = folder_.path() / "topology.conf";
  std::ofstream(file)
      << "SwitchName=east Nodes=sim-node-000[0-1]\nSwitchName=west Nodes=sim-node-000[2-3]\n"
         "SwitchName=north Nodes=sim-node-000[4-5]\nSwitchName=south Nodes=sim-node-000[6-7]\n";
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
  const Json params = {{"topology", file.string()}};
  EXPECT_EQ(culprits(0, params), NameSet{"uplink of west"});
  EXPECT_EQ(culprits(4, params), NameSet{"uplink of west"});
  EXPECT_EQ(culprits(8, params), NameSet{"none"});
}

TEST_F(RingPlugin, SaysWhatSpeaksAgainstACulprit) {
  plant("[[fault]]\nkind = \"slow_nic\"\nnode = 5\nfactor = 0.7\n");
  testing::RecordingHost host;
  ASSERT_EQ(run(0, host).ran, MUSTER_OK) << host.error;
  ASSERT_EQ(host.told("culprit_evidence").size(), 1u);
  const std::string text = host.told("culprit_evidence")[0].text;
  EXPECT_EQ(text.rfind("sim-node-0005 is ", 0), 0u) << text;
  EXPECT_NE(text.find("slow with all of sim-node-0004, sim-node-0006"), std::string::npos) << text;
  EXPECT_NEAR(host.value("culprit_loss"), 0.3, 0.03);
  EXPECT_NEAR(host.value("culprit_bandwidth") / host.value("culprit_peer_bandwidth"), 0.7, 0.05);
  EXPECT_GT(host.value("culprit_confidence"), 0.99);
}

TEST_F(RingPlugin, RefusesATopologyWithoutANode) {
  plant("");
  const auto file = folder_.path() / "topology.conf";
  std::ofstream(file) << "SwitchName=a Nodes=sim-node-000[0-6]\n";
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
  testing::RecordingHost host;
  EXPECT_EQ(run(0, host, {{"topology", file.string()}}).ran, MUSTER_BAD_PARAMETER);
  EXPECT_NE(host.error.find("no leaf switch has node sim-node-0007"), std::string::npos) << host.error;
}

/// A record is handed to customers: a plan is no way to get a secret into it.
TEST_F(RingPlugin, ReadsNoTopologyThatNotEverybodyMayRead) {
  plant("");
  const auto file = folder_.path() / "secret";
  std::ofstream(file) << "the-secret\n";
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
  std::filesystem::permissions(file, std::filesystem::perms(0600));
  testing::RecordingHost host;
  EXPECT_EQ(run(0, host, {{"topology", file.string()}}).ran, MUSTER_BAD_PARAMETER);
  EXPECT_NE(host.error.find("everybody may read"), std::string::npos) << host.error;
  EXPECT_EQ(host.error.find("the-secret"), std::string::npos);
}

/// Ranks of a node may follow each other in one process, and what one computed the next one need not.
TEST_F(RingPlugin, TellsTheSameWhetherOrNotAnotherRankCameBefore) {
  for (const std::string faults : {"", "[[fault]]\nkind = \"slow_nic\"\nnode = 1\nfactor = 0.7\n",
                                   "[[fault]]\nkind = \"slow_nic\"\nnode = 1\nfactor = 0.7\nfrom = 0.5\n"}) {
    plant(faults);
    std::vector<testing::RecordingHost> hosts(2);
    ASSERT_EQ(run(3, hosts[0]).ran, MUSTER_OK) << hosts[0].error;
    testing::RecordingHost before;
    ASSERT_EQ(run(2, before).ran, MUSTER_OK) << before.error;
    ASSERT_EQ(run(3, hosts[1]).ran, MUSTER_OK) << hosts[1].error;
    for (const char* metric : {"bandwidth", "latency", "device_bandwidth", "culprits", "undecided", "rounds",
                               "confirmations", "looks_again", "smallest_detectable_loss"}) {
      const auto alone = hosts[0].told(metric), after = hosts[1].told(metric);
      ASSERT_EQ(alone.size(), after.size()) << metric;
      for (size_t i = 0; i < alone.size(); ++i) {
        EXPECT_EQ(alone[i].samples, after[i].samples) << metric;
        EXPECT_EQ(alone[i].labels, after[i].labels) << metric;
        EXPECT_EQ(alone[i].time, after[i].time) << metric;
      }
    }
  }
}

TEST_F(RingPlugin, StopsWhenItIsCancelled) {
  plant("");
  testing::RecordingHost host;
  host.cancelAfter = 1;
  EXPECT_EQ(run(0, host).ran, MUSTER_CANCELLED);
}

}  // namespace
}  // namespace muster
