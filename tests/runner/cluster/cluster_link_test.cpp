// SPDX-License-Identifier: Apache-2.0
// Where node 0's store is served, and what it outlives.
#include "runner/cluster/cluster_link.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
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

/// Nodes 0 and 1 wait for node 2. A member of the run tells node 1 that all have come.
TEST(ClusterLink, LetsNobodyDecideInNodeZerosPlace) {
  Nodes nodes(3);
  for (const int rank : {0, 1}) nodes.start(nodes.options(rank));
  const auto hostile = hostileRunner(nodes.first());
  const auto entries = nodes.onEach<ClusterEntry>([&](ClusterLink& link) {
    ClusterStage stage(link, "walk", 3);
    if (link.options().nodeRank == 1) return stage.enter(1);
    const std::string self = statusFromText(hostile->get("status/1", 5).value()).value().nonce;
    const Json decision = {{"world", 3}, {"leader", link.members().self()}, {"has_parts", true}};
    const Json news = {{"status", ""},
                       {"round", ""},
                       {"culprit", ""},
                       {"ranks", Json::array()},
                       {"open", "walk/enter"},
                       {"decided", "walk/enter"},
                       {"decision", dumpJson(decision)}};
    for (const std::string start : {"", "node-0/"}) {
      const bool allowed = start.empty();
      EXPECT_EQ(hostile->set(start + "q/walk/enter/part/1", dumpJson({{"first", 1}, {"start", self}})).ok(),
                allowed);
      EXPECT_EQ(hostile->set(start + "q/walk/enter/decision", dumpJson(decision)).ok(), allowed);
      EXPECT_EQ(hostile->set(start + "news", dumpJson(news)).ok(), allowed);
    }
    return stage.enter(1);
  });
  for (const ClusterEntry& entry : entries) {
    EXPECT_EQ(entry.kind, ClusterEntry::Kind::kError);
    EXPECT_THAT(entry.why, ::testing::HasSubstr("1 of 3 nodes did not arrive: node 2"));
  }
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
