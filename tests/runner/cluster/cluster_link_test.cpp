// SPDX-License-Identifier: Apache-2.0
// Where node 0's store is served, and what it outlives.
#include "runner/cluster/cluster_link.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runner/rendezvous/wire/store_key.h"
#include "tests/runner/cluster/cluster_nodes.h"

namespace muster::testing {
namespace {

/// Real connections: 127.0.0.0/8 is all of this machine's.
TEST(ClusterLink, IsServedAtTheGivenAddressAlone) {
  for (const int last : {1, 2}) {
    Nodes nodes(2);
    ClusterOptions options = nodes.options(0);
    options.store = {fmt::format("127.0.0.{}", last), 0};
    const StoreAddress served = nodes.start(options).storeAddress();
    EXPECT_EQ(served.host, options.store.host);
    for (const int other : {1, 2, 3}) {
      StoreClientOptions client;
      client.address = {fmt::format("127.0.0.{}", other), served.port};
      client.key = storeKey(options.token, "");
      client.who = "a test";
      EXPECT_EQ(StoreClient(client).connect(other == last ? 20 : 0.3).ok(), other == last) << last << other;
    }
  }
}

/// A client that may do whatever a runner may.
std::unique_ptr<StoreClient> hostileRunner(const ClusterLink& leader) {
  StoreClientOptions client;
  client.address = leader.storeAddress();
  client.prefix = "muster/";
  client.key = storeKey(leader.options().token, client.prefix);
  return std::make_unique<StoreClient>(client);
}

/// One that has the token may spoil the run for others; it must not end node 0's runner.
TEST(ClusterLink, OutlivesWhateverAPeerWithTheTokenSays) {
  Nodes nodes(3);
  ClusterLink& leader = nodes.start(nodes.options(0));
  ASSERT_TRUE(leader.members().join(5).ok());
  const auto hostile = hostileRunner(leader);
  const std::vector<std::string> junk = {
      "",
      "{",
      "[]",
      "7",
      "null",
      R"({"nonce": 7, "host": [], "identity": "x"})",
      R"({"leaves": {"ranks": -1}})",
      R"({"ranks": 2147483647, "start": {}})",
      R"({"ranks": [1], "cases": [7, {}]})",
      R"({"cases": 3})",
      R"({"nonce": "a", "host": "h", "identity": {"plan": 3}, "failures": [{"rank": []}]})",
      std::string(2u << 20, 'x')};
  int question = 0;
  for (const std::string& text : junk) {
    const std::string stage = fmt::format("walk{}", question++);
    for (const int rank : {0, 1, 2, 99}) {
      ASSERT_TRUE(hostile->set(fmt::format("status/{}", rank), text).ok());
      ASSERT_TRUE(hostile->set(fmt::format("status/{}/beat", rank), text).ok());
    }
    ASSERT_TRUE(hostile->set("status/x", text).ok());
    for (const char* topic : {"enter", "1/0/end", "retry/1", "leave"})
      for (const char* rank : {"1", "2", "77", "-1", "x"})
        ASSERT_TRUE(hostile->set(fmt::format("q/{}/{}/answer/{}", stage, topic, rank), text).ok());
    ClusterStage hit(leader, stage, 0.1);
    EXPECT_NE(hit.enter(1).kind, ClusterEntry::Kind::kGo);
    hit.beginRound(1, 0);
    (void)leader.rounds().nodes();
    EXPECT_FALSE(hit.endRound(cutShortIn(0), 2, 0).culprit.empty());
    (void)hit.retries(1, {"case"}, "");
    (void)hit.leave("");
  }
}

}  // namespace
}  // namespace muster::testing
