// SPDX-License-Identifier: Apache-2.0
// Ranks of several nodes that meet in node 0's store through their nodes' relays: real connections all the
// way.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "runner/core/clock.h"
#include "runner/rendezvous/store_client.h"
#include "runner/rendezvous/store_server.h"
#include "runner/rendezvous/wire/store_key.h"
#include "tests/runner/rendezvous/raw_peer.h"

namespace muster {
namespace {

using testing::kToken;

using ::testing::AllOf;
using ::testing::HasSubstr;

class Relay : public ::testing::Test {
 protected:
  Relay() { serve(0); }

  void serve(uint16_t port) {
    StoreServerOptions options;
    options.token = kToken;
    options.port = port;
    auto started = StoreServer::start(options);
    ASSERT_TRUE(started.ok()) << started.error().text();
    store = std::move(*started);
  }

  std::unique_ptr<StoreServer> relay(int node) const {
    StoreRelayOptions options;
    options.address = {"127.0.0.1", store->port()};
    options.prefix = "ranks/";
    options.key = storeKey(kToken, options.prefix);
    options.who = "node " + std::to_string(node);
    auto started = StoreServer::startRelay(options);
    EXPECT_TRUE(started.ok()) << started.error().text();
    return std::move(started).value();
  }

  static std::unique_ptr<StoreClient> rank(StoreServer& server, int rank,
                                           const std::string& round = "walk/") {
    StoreClientOptions options;
    options.who = "rank " + std::to_string(rank);
    return std::make_unique<StoreClient>(server.connect(round).value(), options);
  }

  /// A client that sees all keys.
  [[nodiscard]] std::unique_ptr<StoreClient> runner() const {
    StoreClientOptions options;
    options.address = {"127.0.0.1", store->port()};
    options.key = storeKey(kToken, "");
    return std::make_unique<StoreClient>(options);
  }

  std::unique_ptr<StoreServer> store;
};

/// Nodes 1 and 2 have relays; node 0's ranks are connected to its store itself.
TEST_F(Relay, BringsTheRanksOfANodeOverOneConnection) {
  constexpr int kEach = 8, kRanks = 3 * kEach;
  const auto one = relay(1), two = relay(2);
  std::vector<std::thread> threads;
  for (int number = 0; number < kRanks; ++number)
    threads.emplace_back([&, number] {
      StoreServer& server = number < kEach ? *store : number < 2 * kEach ? *one : *two;
      const auto client = rank(server, number, number < kEach ? "ranks/walk/" : "walk/");
      const std::string large(1u << 20, static_cast<char>('a' + number % 26));
      for (int step = 0; step < 5; ++step) {
        EXPECT_TRUE(client->set(fmt::format("{}/{}", step, number), large).ok());
        const Status all = client->barrier("step", number, kRanks, 60);
        EXPECT_TRUE(all.ok()) << all.error().text();
        const int other = (number + 7) % kRanks;
        const auto value = client->get(fmt::format("{}/{}", step, other), 60);
        ASSERT_TRUE(value.ok()) << value.error().text();
        EXPECT_EQ(value->at(77), static_cast<char>('a' + other % 26));
        EXPECT_TRUE(client->add(fmt::format("count/{}", number), 1).ok());
      }
    });
  for (std::thread& thread : threads) thread.join();
  const auto all = runner();
  for (int number = 0; number < kRanks; ++number)
    EXPECT_EQ(*all->get(fmt::format("ranks/walk/count/{}", number), 0), "5");
  EXPECT_EQ(store->counts().accepted, 3u) << "two relays and this test";
}

TEST_F(Relay, KeepsARankToItsOwnRound) {
  const auto node = relay(1);
  const auto client = rank(*node, 3), other = rank(*node, 4, "walk2/");
  ASSERT_TRUE(runner()->set("muster/status/0", "node 0's").ok());
  for (const char* key : {"muster/status/0", "../muster/status/0", "ranks/walk2/key", "key"})
    EXPECT_TRUE(client->set(key, "forged").ok());
  EXPECT_EQ(other->get("key", 0).error().code, ErrorCode::kTimeout);
  EXPECT_EQ(*runner()->get("muster/status/0", 0), "node 0's");
  EXPECT_EQ(*runner()->get("ranks/walk/muster/status/0", 0), "forged");
  for (const size_t size : {1014, 1020})  // more than the relay's own prefix, or the rank's, leaves
    EXPECT_THAT(client->set(std::string(size, 'k'), "").error().text(), HasSubstr("bytes with its prefix"));
  EXPECT_TRUE(client->set(std::string(1013, 'k'), "").ok());
  EXPECT_TRUE(client->set("key", "x").ok()) << "and the connection goes on";
}

TEST_F(Relay, NamesTheRanksThatAreMissingNodeByNode) {
  const auto one = relay(1), two = relay(2);
  Status told[2];
  std::thread waiting([&] { told[0] = rank(*one, 0)->barrier("start", 0, 6, 60); });
  std::thread hasty([&] { told[1] = rank(*two, 4)->barrier("start", 4, 6, 1); });
  waiting.join();
  hasty.join();
  for (const Status& status : told) {
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(status.error().text(),
                ::testing::AnyOf(HasSubstr("2 of 6 ranks came, missing: 1, 2, 3, 5"),
                                 HasSubstr("1 of 6 ranks came, missing: 0, 1, 2, 3, 5"),
                                 HasSubstr("1 of 6 ranks came, missing: 1, 2, 3, 4, 5")));
  }
}

void clearRound(StoreServer& store) {
  StoreClient runner(store.connect("ranks/").value(), {});
  EXPECT_TRUE(runner.clear("walk/").ok());
}

/// What a rank says is its own: no other node's rank changes it, or comes to a barrier in its place.
TEST_F(Relay, LetsNoRankSpeakForThoseOfOtherNodes) {
  const auto one = relay(1), two = relay(2);
  const auto honest = rank(*one, 2), liar = rank(*two, 4), leader = rank(*store, 0, "ranks/walk/");
  std::thread waits([&] { EXPECT_TRUE(leader->barrier("start", 0, 2, 60).ok()); });
  EXPECT_TRUE(honest->barrier("start", 1, 2, 60).ok());
  waits.join();
  ASSERT_TRUE(honest->set("view/2", "true").ok());
  EXPECT_TRUE(honest->set("view/2", "and its own").ok());
  for (StoreClient* other : {liar.get(), leader.get()}) {
    const uint64_t before = store->counts().taken;
    EXPECT_EQ(other->set("view/2", "forged").error().code, ErrorCode::kPeer);
    EXPECT_EQ(other->add("view/2", 1).error().code, ErrorCode::kUsage) << "no number";
    EXPECT_EQ(other->touch("view/2", "news", 0, 1).error().code, ErrorCode::kPeer);
    EXPECT_THAT(other->barrier("next", 1, 2, 60).error().text(), HasSubstr("rank 1 is another connection's"));
    EXPECT_THAT(other->barrier("other", 1, 3, 60).error().text(), HasSubstr("rank 1 is another"));
    EXPECT_EQ(store->counts().taken, before + 4);
  }
  EXPECT_EQ(*liar->get("view/2", 0), "and its own");
  // Only node 0's runner clears what ranks say: whoever tries loses its connection, whatever keys it may use.
  EXPECT_FALSE(liar->clear("view").ok());
  EXPECT_FALSE(leader->clear("view").ok());
  for (const std::string prefix : {"", "r", "ranks/", "ranks/walk/v"}) {
    StoreClientOptions options;
    options.address = {"127.0.0.1", store->port()};
    options.prefix = prefix;
    options.key = storeKey(kToken, prefix);
    StoreClient peer(options);
    EXPECT_TRUE(peer.get(std::string("ranks/walk/view/2").substr(prefix.size()), 0).ok()) << prefix;
    EXPECT_FALSE(peer.clear(std::string("ranks/walk/view/2").substr(prefix.size())).ok()) << prefix;
    EXPECT_FALSE(peer.changes(std::string("ranks/walk/view/2").substr(prefix.size()), 0).ok()) << prefix;
    EXPECT_EQ(peer.set(std::string("ranks/walk/view/2").substr(prefix.size()), "forged").error().code,
              ErrorCode::kPeer);
  }
  EXPECT_EQ(*honest->get("view/2", 0), "and its own");
  EXPECT_EQ(*rank(*store, 0, "ranks/")->clear("walk/"), 1);
  EXPECT_TRUE(rank(*two, 5)->set("view/2", "anew").ok()) << "the round is over";
}

/// Whoever has come first keeps a place while it is connected; a node that lost its connection comes back.
TEST_F(Relay, GivesTheSeatOfALostConnectionToTheNextOne) {
  auto one = relay(1);
  const auto leader = rank(*store, 0, "ranks/walk/");
  for (int turn = 0; turn < 3; ++turn, one = relay(1)) {
    std::thread waits([&] { EXPECT_TRUE(leader->barrier("start", 0, 2, 60).ok()); });
    const Status came = rank(*one, 1)->barrier("start", 1, 2, 60);
    EXPECT_TRUE(came.ok()) << came.error().text();
    waits.join();
  }
  EXPECT_EQ(store->counts().taken, 0u);
}

/// Waits in vain as rank 0 until that is told what is `said`.
void expectMissing(StoreServer& store, StoreClient& client, const std::string& said) {
  const double end = systemClock().now() + 20;
  while (true) {
    const Status missing = client.barrier("start", 0, 4, 0.2);
    ASSERT_FALSE(missing.ok());
    if (missing.error().text().find(said) != std::string::npos) return;
    ASSERT_LT(systemClock().now(), end) << missing.error().text();
    clearRound(store);
  }
}

TEST_F(Relay, GivesThePlaceOfARankBackThatIsGoneAndOfAllRanksOfANodeThatIs) {
  const auto one = relay(1);
  auto two = relay(2);
  const auto observer = rank(*one, 0);
  std::atomic<bool> dead{false};
  StoreClientOptions dying;
  dying.cancelled = [&] { return dead.load(); };
  {
    std::thread waits([&, socket = two->connect("walk/").value()]() mutable {
      StoreClient client(std::move(socket), dying);
      EXPECT_FALSE(client.barrier("start", 1, 4, 600).ok());
    });
    dead = true;
    waits.join();
  }
  expectMissing(*store, *observer, "1 of 4 ranks came, missing: 1, 2, 3");
  // A runner that is killed takes its relay along, whatever its ranks wait for.
  clearRound(*store);
  std::vector<std::thread> waiting;
  for (const int number : {2, 3})
    waiting.emplace_back([&, number, client = std::shared_ptr(rank(*two, number))] {
      EXPECT_THAT(client->barrier("start", number, 4, 600).error().text(),
                  HasSubstr("lost the store of its group"));
    });
  two.reset();
  for (std::thread& thread : waiting) thread.join();
  expectMissing(*store, *observer, "1 of 4 ranks came, missing: 1, 2, 3");
}

TEST_F(Relay, TellsItsRanksWhyTheStoreWasLostAndFindsTheNextOne) {
  const auto node = relay(1);
  const uint16_t port = store->port();
  const auto client = rank(*node, 2);
  ASSERT_TRUE(client->set("key", "first").ok());
  std::thread waiting([&] {
    const auto value = client->get("never", 600);
    ASSERT_FALSE(value.ok());
    EXPECT_EQ(value.error().code, ErrorCode::kIo);
    EXPECT_THAT(value.error().text(),
                AllOf(HasSubstr("rank 2 cannot use the store of its group (for never): node 1 "),
                      HasSubstr(fmt::format("the store at 127.0.0.1:{}: ", port))));
  });
  store.reset();
  waiting.join();
  serve(port);
  const double end = systemClock().now() + 20;
  Status again = client->set("key", "second");
  while (!again.ok() && systemClock().now() < end) again = client->set("key", "second");
  EXPECT_TRUE(again.ok()) << again.error().text();
  EXPECT_EQ(*runner()->get("ranks/walk/key", 0), "second");
}

TEST_F(Relay, IsToldAStoreThatIsFull) {
  StoreServerOptions options;
  options.token = kToken;
  options.limits.connections = 0;
  store = std::move(StoreServer::start(options)).value();
  const auto node = relay(1);
  EXPECT_THAT(rank(*node, 2)->set("key", "x").error().text(),
              HasSubstr("it serves 0 connections already, which is its limit"));
}

}  // namespace
}  // namespace muster
