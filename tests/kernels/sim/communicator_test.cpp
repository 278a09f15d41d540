// SPDX-License-Identifier: Apache-2.0
// Simulated groups: what healthy links give, and what each planted fault of the network does to whom.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/interfaces/backend.h"
#include "kernels/sim/sim_communicator.h"
#include "kernels/sim/sim_network.h"
#include "tests/kernels/sim/small_scenario.h"

namespace muster::sim {
namespace {

/// Two devices a node, 100 GB/s between them, two rails of 10 GB/s each, no latency and no noise.
const std::string kFabric = R"(
[network]
intra_bandwidth = "100 GB/s"
intra_latency = "0 s"
intra_transport = "nvlink"
rails = 2
rail_bandwidth = "10 GB/s"
inter_latency = "0 s"
inter_transport = "ib"
nodes_per_leaf = 2
noise = 0
)";

std::vector<GroupMember> nodesOfTwo(int nodes) {
  std::vector<GroupMember> members;
  for (int node = 0; node < nodes; ++node)
    for (int device = 0; device < 2; ++device) members.push_back({node, device});
  return members;
}

SimNetwork networkOf(const std::string& faults, int nodes) {
  return {smallScenario(kFabric + faults), 1, nodesOfTwo(nodes)};
}

double busBandwidth(const SimNetwork& network, CollectiveOp op, double at = 0) {
  CollectiveSpec spec;
  spec.op = op;
  spec.count = 1 << 20;
  return static_cast<double>(spec.bytes(network.size())) * spec.busFactor(network.size()) /
         network.collectiveSeconds(spec, at, 1);
}

TEST(SimNetwork, GivesTheBusBandwidthOfItsSlowestPart) {
  EXPECT_NEAR(busBandwidth(networkOf("", 1), CollectiveOp::kAllReduce), 100e9, 1e3);
  EXPECT_NEAR(busBandwidth(networkOf("", 4), CollectiveOp::kAllReduce), 20e9, 1e3);  // two rails
  EXPECT_NEAR(busBandwidth(networkOf("", 4), CollectiveOp::kAllToAll), 10e9 * 7 / 6, 1e3);
}

/// Looked up pair by pair, which takes too long for large groups.
double slowestPairOf(const SimNetwork& network, double at) {
  const double n = network.size();
  double within = 1e99, between = 1e99;
  for (int a = 0; a < network.size(); ++a)
    for (int b = 0; b < network.size(); ++b)
      if (a != b) {
        double& slowest = network.sameNode(a, b) ? within : between;
        slowest = std::min(slowest, network.linkRate(a, b, at));
      }
  return std::min(within, between * (n - 1) / (n - 2));
}

TEST(SimNetwork, FindsTheSlowestOfAllPairsWhereverAFaultIs) {
  const std::string fault = "[[fault]]\nfactor=0.01\nkind=";
  for (const std::string one :
       {"\"slow\"\ndevice=1\n", "\"slow\"\ndevice=1\nnode=6\n", "\"slow_nic\"\nnode=7\nrail=0\n",
        "\"slow_nic\"\nnode=0\n", "\"slow_uplink\"\nleaf=3\n", "\"slow_link\"\nnode=2\npeer_node=7\n",
        "\"slow_link\"\nnode=2\ndevice=1\npeer_node=3\npeer_device=0\n",
        "\"slow_link\"\ndevice=0\npeer_device=1\n", "\"slow_link\"\nnode=5\ndevice=0\npeer_device=1\n"})
    for (const std::string& other : {std::string(), fault + "\"slow_uplink\"\nleaf=0\nfrom=5\n",
                                     fault + "\"slow\"\ndevice=0\nnode=3\nuntil=5\n"}) {
      const SimNetwork network = networkOf(fault + one + other, 9);
      for (const double at : {0.0, 10.0})
        EXPECT_NEAR(busBandwidth(network, CollectiveOp::kAllToAll, at), slowestPairOf(network, at), 1)
            << one << other << at;
    }
}

TEST(SimNetwork, IsSteadyWhileNoFaultIsToBeginOrEnd) {
  const std::string fault = "[[fault]]\nkind=\"slow_nic\"\nnode=1\nfactor=0.5\n";
  EXPECT_TRUE(networkOf("", 4).isSteadyFrom(0));
  EXPECT_TRUE(networkOf(fault, 4).isSteadyFrom(0));
  EXPECT_FALSE(networkOf(fault + "from=5\n", 4).isSteadyFrom(0));
  EXPECT_TRUE(networkOf(fault + "from=5\n", 4).isSteadyFrom(5));
  EXPECT_FALSE(networkOf(fault + "until=5\n", 4).isSteadyFrom(4));
  const std::string flapping = "[[fault]]\nkind=\"flapping_nic\"\nnode=1\nrail=0\nperiod=2\ndown=1\n";
  EXPECT_FALSE(networkOf(flapping, 4).isSteadyFrom(0));
}

TEST(SimNetwork, IsAsSlowAsASlowLinkThatItUses) {
  const std::string inside = "[[fault]]\nkind=\"slow_link\"\nnode=0\ndevice=0\npeer_device=1\nfactor=0.1\n";
  EXPECT_NEAR(busBandwidth(networkOf(inside, 1), CollectiveOp::kAllReduce), 10e9, 1e3);
  const std::string between = "[[fault]]\nkind=\"slow_link\"\nnode=1\npeer_node=2\nfactor=0.5\n";
  const SimNetwork network = networkOf(between, 4);
  EXPECT_NEAR(busBandwidth(network, CollectiveOp::kAllReduce), 10e9, 1e3);
  EXPECT_NEAR(network.linkRate(2, 4, 0), 5e9, 1);   // node 1 to node 2
  EXPECT_NEAR(network.linkRate(4, 2, 0), 5e9, 1);   // and back
  EXPECT_NEAR(network.linkRate(2, 6, 0), 10e9, 1);  // node 1 to node 3
  EXPECT_NEAR(network.linkRate(2, 3, 0), 100e9, 1);
}

TEST(SimNetwork, TellsASlowRailFromASlowNode) {
  const SimNetwork rail = networkOf("[[fault]]\nkind=\"slow_nic\"\nnode=1\nrail=1\nfactor=0.5\n", 4);
  EXPECT_NEAR(rail.linkRate(3, 5, 0), 5e9, 1);
  EXPECT_NEAR(rail.linkRate(2, 4, 0), 10e9, 1);
  const SimNetwork node = networkOf("[[fault]]\nkind=\"slow_nic\"\nnode=1\nfactor=0.5\n", 4);
  EXPECT_NEAR(node.linkRate(3, 5, 0), 5e9, 1);
  EXPECT_NEAR(node.linkRate(0, 2, 0), 5e9, 1);
  EXPECT_NEAR(node.linkRate(0, 4, 0), 10e9, 1);
}

TEST(SimNetwork, SlowsWhatLeavesALeaf) {
  const SimNetwork network = networkOf("[[fault]]\nkind=\"slow_uplink\"\nleaf=1\nfactor=0.5\n", 4);
  EXPECT_NEAR(network.linkRate(0, 2, 0), 10e9, 1);  // nodes 0 and 1 share leaf 0
  EXPECT_NEAR(network.linkRate(4, 6, 0), 10e9, 1);
  EXPECT_NEAR(network.linkRate(2, 4, 0), 5e9, 1);
}

TEST(SimNetwork, WaitsWhileANicIsDown) {
  const SimNetwork network =
      networkOf("[[fault]]\nkind=\"flapping_nic\"\nnode=0\nrail=0\nfrom=10\nperiod=4\ndown=1\n", 2);
  CollectiveSpec spec;
  spec.count = 1;
  EXPECT_LT(network.collectiveSeconds(spec, 9, 1), 1e-6);
  EXPECT_NEAR(network.collectiveSeconds(spec, 14.25, 1), 0.75, 1e-6);
  EXPECT_LT(network.collectiveSeconds(spec, 15.5, 1), 1e-6);
  EXPECT_NEAR(network.exchangeSeconds(0, 2, 1, 1, 14.25, 1), 0.75, 1e-6);
  EXPECT_LT(network.exchangeSeconds(1, 3, 1, 1, 14.25, 1), 1e-6);  // the other rail
}

/// Many transfers in a row, each begun when the last one has ended: together they take as much longer as the
/// NIC is down in that time, however long each of them is.
TEST(SimNetwork, LosesTheTimeThatANicIsDownHoweverLongItsTransfersAre) {
  const SimNetwork flapping =
      networkOf("[[fault]]\nkind=\"flapping_nic\"\nnode=1\nrail=0\nperiod=\"1s\"\ndown=\"5ms\"\n", 2);
  const SimNetwork steady = networkOf("", 2);
  for (const uint64_t count : {1u << 16, 1u << 22, 1u << 27, 1u << 31}) {
    CollectiveSpec spec;
    spec.count = count;
    double now = 0;
    double without = 0;
    while (now < 20) {
      now += flapping.collectiveSeconds(spec, now, 1);
      without += steady.collectiveSeconds(spec, without, 1);
    }
    const double once = steady.collectiveSeconds(spec, 0, 1);
    EXPECT_NEAR(now - without, 0.005 * std::floor(now), 0.0051)
        << count << " elements, " << once << " s each";
  }
}

TEST(SimNetwork, CountsHowOftenANicWentDown) {
  const auto scenario = smallScenario(
      kFabric +
      "[[fault]]\nkind=\"flapping_nic\"\nnode=1\nrail=0\nperiod=\"1s\"\ndown=\"5ms\"\nfrom=10\nuntil=13\n");
  const auto times = [&](double at, int node = 1, int rail = 0) {
    return timesDown(scenario->faults, node, rail, at);
  };
  EXPECT_EQ(times(9.9), 0);
  EXPECT_EQ(times(10), 1);
  EXPECT_EQ(times(11.5), 2);
  EXPECT_EQ(times(99), 3) << "the fault has ended before it went down once more";
  EXPECT_EQ(times(99, 0), 0);
  EXPECT_EQ(times(99, 1, 1), 0);
}

TEST(SimNetwork, FollowsFaultsThatBeginAndEnd) {
  const SimNetwork network =
      networkOf("[[fault]]\nkind=\"slow_nic\"\nnode=1\nrail=1\nfactor=0.5\nfrom=10\nuntil=20\n", 4);
  for (const CollectiveOp op : {CollectiveOp::kAllReduce, CollectiveOp::kAllToAll}) {
    const double healthy = busBandwidth(network, op, 0);
    EXPECT_NEAR(busBandwidth(network, op, 10), healthy / 2, 1e3);
    EXPECT_NEAR(busBandwidth(network, op, 19.99), healthy / 2, 1e3);
    EXPECT_NEAR(busBandwidth(network, op, 20), healthy, 1e3);
  }
}

TEST(SimNetwork, WaitsForAStraggler) {
  const std::string fault =
      "[[fault]]\nkind=\"slow\"\nnode=0\ndevice=1\nops=[\"collective\"]\nfactor=0.25\nfrom=5\n";
  EXPECT_NEAR(busBandwidth(networkOf(fault, 1), CollectiveOp::kAllReduce, 0), 100e9, 1e3);
  EXPECT_NEAR(busBandwidth(networkOf(fault, 1), CollectiveOp::kAllReduce, 6), 25e9, 1e3);
}

/// Two ranks of one node, each as it would be in a process of its own.
class SimGroupTest : public ::testing::Test {
 protected:
  struct Peer {
    std::unique_ptr<SimDevice> device;
    std::unique_ptr<Communicator> group;
  };
  static Peer rankOf(int rank, const std::string& more, uint64_t seed = 3) {
    CommunicatorSpec spec;
    spec.name = "g";
    spec.rank = rank;
    spec.size = 2;
    Peer peer{smallDevice(more, rank), nullptr};
    auto formed = makeCommunicator(*peer.device, spec, seed, 0);
    EXPECT_TRUE(formed.ok()) << formed.error().text();
    peer.group = std::move(*formed);
    return peer;
  }
  static std::string checked(Communicator& group, CollectiveOp op) {
    CollectiveSpec spec;
    spec.op = op;
    spec.count = 1000;
    auto work = group.collective(spec);
    EXPECT_TRUE(work.ok()) << work.error().text();
    EXPECT_TRUE((*work)->prepare(1).ok());
    EXPECT_TRUE((*work)->run().ok());
    const auto found = (*work)->check();
    EXPECT_TRUE(found.ok());
    return std::to_string(found->wrong) + " @ " + std::to_string(found->firstElement) + ", " +
           std::to_string(found->source);
  }
};

TEST_F(SimGroupTest, TakesTheSameTimeOnEveryRank) {
  const std::string noisy =
      "\n[network]\nintra_bandwidth=\"100 GB/s\"\nrail_bandwidth=\"10 GB/s\"\nnoise=0.05\n";
  std::vector<double> times;
  for (int rank : {0, 1}) {
    Peer peer = rankOf(rank, noisy);
    CollectiveSpec spec;
    spec.count = 1 << 20;
    auto work = peer.group->collective(spec);
    ASSERT_TRUE(work.ok() && (*work)->prepare(1).ok());
    for (int i = 0; i < 3; ++i) times.push_back(*peer.group->time([&] { return (*work)->run(); }));
  }
  EXPECT_EQ(times[0], times[3]);
  EXPECT_EQ(times[2], times[5]);
  EXPECT_NE(times[0], times[1]);  // there is noise
}

/// Nodes without a device that others have: each rank is where its device is, whoever asks.
TEST_F(SimGroupTest, PlacesRanksOnTheDevicesThatAreThere) {
  constexpr int kNodes = 4;
  for (int node = 0; node < kNodes; ++node)
    for (int device = 0; device < 2; ++device) {
      const std::string more = kFabric + "[[fault]]\nkind = \"missing\"\nnode = " + std::to_string(node) +
                               "\ndevice = " + std::to_string(device) + "\n";
      std::vector<int> nodeOf;
      for (int rank = 0, on = 0; on < kNodes; ++on)
        for (int place = 0; place < 2; ++place, ++rank)
          if (on != node || place != device) nodeOf.push_back(on);
      for (int own = 0; own < kNodes; ++own) {
        CommunicatorSpec spec;
        spec.name = "g";
        spec.size = static_cast<int>(nodeOf.size());
        const auto there = smallDevice(more, 0);
        auto group = makeCommunicator(*there, spec, 3, own);
        ASSERT_TRUE(group.ok()) << group.error().text();
        for (int a = 0; a < spec.size; ++a)
          for (int b = a + 1; b < spec.size; ++b) {
            const bool same = nodeOf[static_cast<size_t>(a)] == nodeOf[static_cast<size_t>(b)];
            EXPECT_EQ(*(*group)->exchangeBetween(a, b, 1 << 20, 1 << 20, 1) < 5e-5, same) << a << " " << b;
          }
      }
    }
}

TEST_F(SimGroupTest, NamesTheRankThatCorruptsASum) {
  const std::string fault =
      kFabric + "[[fault]]\nkind=\"corruption\"\nnode=0\ndevice=1\nops=[\"collective\"]\noffset=40\n";
  for (int rank : {0, 1}) {
    Peer peer = rankOf(rank, fault);
    EXPECT_EQ(checked(*peer.group, CollectiveOp::kAllReduce), "1 @ 10, 1");
    EXPECT_EQ(checked(*peer.group, CollectiveOp::kAllGather), "1 @ 1010, 1");
  }
  EXPECT_EQ(checked(*rankOf(0, fault).group, CollectiveOp::kSendRecv), "1 @ 10, 1");
  EXPECT_EQ(checked(*rankOf(1, fault).group, CollectiveOp::kSendRecv), "0 @ 0, -1");
  EXPECT_EQ(checked(*rankOf(1, kFabric).group, CollectiveOp::kAllReduce), "0 @ 0, -1");
}

TEST_F(SimGroupTest, LeavesEqualSumsOnAllRanksButThatOfACorruptOne) {
  const auto hashAfter = [](int rank, const std::string& more) {
    Peer peer = rankOf(rank, more);
    auto buffer = peer.device->allocate(4096);
    EXPECT_TRUE(peer.device->fillNormal(**buffer, Dtype::kF32, static_cast<uint64_t>(rank)).ok());
    EXPECT_TRUE(peer.group->allReduce(**buffer, 0, 1024, Dtype::kF32, ReduceOp::kSum).ok());
    EXPECT_TRUE(peer.group->join().ok());
    return *peer.device->hash(**buffer);
  };
  EXPECT_EQ(hashAfter(0, kFabric), hashAfter(1, kFabric));
  const std::string fault = kFabric + "[[fault]]\nkind=\"corruption\"\ndevice=1\nops=[\"collective\"]\n";
  EXPECT_EQ(hashAfter(0, fault), hashAfter(0, kFabric));
  EXPECT_NE(hashAfter(1, fault), hashAfter(0, fault));
}

TEST_F(SimGroupTest, OverlapsSumsWithTheDevicesWork) {
  Peer peer = rankOf(0, kFabric);
  auto buffer = peer.device->allocate(100000000);  // a sum of 1 ms
  ASSERT_TRUE(buffer.ok());
  const double start = peer.device->now();
  ASSERT_TRUE(peer.group->allReduce(**buffer, 0, 25000000, Dtype::kF32, ReduceOp::kSum).ok());
  EXPECT_EQ(peer.device->now(), start);
  peer.device->sleep(0.0004);
  ASSERT_TRUE(peer.group->join().ok());
  EXPECT_NEAR(peer.device->now() - start, 0.001, 1e-9);
}

TEST_F(SimGroupTest, SaysWhatCarriedItsBytes) {
  Peer peer = rankOf(0, kFabric);
  EXPECT_FALSE(peer.group->transports().ok());
  EXPECT_EQ(checked(*peer.group, CollectiveOp::kAllReduce), "0 @ 0, -1");
  const auto uses = peer.group->transports();
  ASSERT_TRUE(uses.ok());
  ASSERT_EQ(uses->size(), 1u);
  EXPECT_EQ((*uses)[0].transport, "nvlink");
  EXPECT_EQ((*uses)[0].bytes, 4000);
}

TEST_F(SimGroupTest, TellsWhatOthersWouldMeasure) {
  Peer peer = rankOf(0, kFabric);
  EXPECT_FALSE(peer.group->ranksTalk());
  const double now = peer.device->now();
  EXPECT_NEAR(*peer.group->exchangeBetween(0, 1, 100000000, 0, 1), 0.001, 1e-9);
  EXPECT_NEAR(*peer.group->exchangeBetween(1, 0, 0, 200000000, 1), 0.002, 1e-9);
  EXPECT_EQ(peer.device->now(), now);
  EXPECT_FALSE(peer.group->exchangeBetween(0, 2, 1, 1, 1).ok());
  EXPECT_FALSE(peer.group->exchangeBetween(1, 1, 1, 1, 1).ok());
}

TEST_F(SimGroupTest, IsBrokenOnceItIsAborted) {
  Peer peer = rankOf(0, kFabric);
  peer.group->abort();
  EXPECT_EQ(peer.group->barrier().error().code, ErrorCode::kIo);
}

TEST(SimCommunicator, NeedsANetwork) {
  auto device = smallDevice();
  CommunicatorSpec spec;
  const auto formed = makeCommunicator(*device, spec, 1, 0);
  ASSERT_FALSE(formed.ok());
  EXPECT_EQ(formed.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(formed.error().text().find("\"small\" has no [network]"), std::string::npos);
}

std::string mistakesIn(const std::string& more) {
  const auto scenario = parseScenario(smallScenarioText(more), "small.toml");
  return scenario.ok() ? "" : scenario.error().text();
}

TEST(NetworkFault, ThatMakesNoSenseIsAMistakeWithItsPlace) {
  const std::pair<const char*, const char*> rows[] = {
      {"kind=\"slow_link\"\nfactor=0.5\n", "`device`"},
      {"kind=\"slow_link\"\nnode=0\ndevice=1\npeer_device=1\nfactor=0.5\n", "a link has two ends"},
      {"kind=\"slow_nic\"\nnode=0\nrail=2\nfactor=0.5\n", "`rail`"},
      {"kind=\"slow_nic\"\nrail=1\nfactor=0.5\n", "`node`"},
      {"kind=\"flapping_nic\"\nnode=0\nperiod=1\ndown=1\n", "does not flap"},
      {"kind=\"slow_uplink\"\nfactor=0.5\n", "`leaf`"},
      {"kind=\"slow_nic\"\nnode=0\nfactor=0.5\nops=[\"gemm\"]\n", "ops"},
  };
  for (const auto& [fault, wanted] : rows) {
    const std::string said = mistakesIn(kFabric + "[[fault]]\n" + fault);
    EXPECT_NE(said.find(wanted), std::string::npos) << fault << said;
    EXPECT_EQ(said.find("small.toml:"), 0u) << said;
  }
  EXPECT_NE(mistakesIn("[[fault]]\nkind=\"slow_uplink\"\nleaf=0\nfactor=0.5\n").find("`nodes_per_leaf`"),
            std::string::npos);
}

}  // namespace
}  // namespace muster::sim
