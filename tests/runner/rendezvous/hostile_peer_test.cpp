// SPDX-License-Identifier: Apache-2.0
// What strangers, broken clients and slow ones get from the store, and that the others are served all the
// while.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "runner/core/clock.h"
#include "runner/rendezvous/store_client.h"
#include "runner/rendezvous/store_server.h"
#include "runner/rendezvous/wire/store_key.h"
#include "runner/rendezvous/wire/store_protocol.h"
#include "tests/runner/rendezvous/raw_peer.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::kGenerous;
using testing::kToken;
using testing::RawPeer;

class HostilePeer : public ::testing::Test {
 protected:
  void start(const StoreLimits& limits) {
    StoreServerOptions options;
    options.token = kToken;
    options.limits = limits;
    auto started = StoreServer::start(options);
    ASSERT_TRUE(started.ok()) << started.error().text();
    server = std::move(*started);
    StoreClientOptions well;
    well.address = {"127.0.0.1", server->port()};
    well.key = storeKey(kToken, "");
    well.who = "a well-behaved rank";
    client = std::make_unique<StoreClient>(std::move(well));
    ASSERT_TRUE(client->set("before", "1").ok());
  }
  void SetUp() override { start({}); }
  /// The store keeps what it had and takes more, over old and new connections.
  void TearDown() override {
    EXPECT_EQ(*client->get("before", 0), "1");
    StoreClientOptions fresh;
    fresh.address = {"127.0.0.1", server->port()};
    fresh.key = storeKey(kToken, "");
    const Status status = StoreClient(std::move(fresh)).set("after", "2");
    EXPECT_TRUE(status.ok()) << status.error().text();
    EXPECT_EQ(*client->get("after", 0), "2");
  }
  /// Waits until `count` has counted `wanted`.
  void awaitCount(uint64_t StoreCounts::*count, uint64_t wanted) const {
    const double deadline = systemClock().now() + kGenerous;
    while (server->counts().*count < wanted && systemClock().now() < deadline) std::this_thread::yield();
    EXPECT_EQ(server->counts().*count, wanted);
  }

  static std::string lengthOf(uint32_t length) {
    std::string text;
    for (int i = 0; i < 4; ++i) text += static_cast<char>(length >> (8 * i) & 0xff);
    return text;
  }

  std::unique_ptr<StoreServer> server;
  std::unique_ptr<StoreClient> client;
};

TEST_F(HostilePeer, HasOnlyThePartOfTheStoreThatItsKeyIsFor) {
  const auto ask = [&](const std::string& prefix, StoreOp op, const std::string& key) {
    RawPeer peer(server->port());
    peer.prove(kToken, prefix);
    peer.send(encodeStoreRequest({op, 0, 0, 0, key, ""}));
    return peer.receive(kStoreLength + 1).size() == kStoreLength + 1;
  };
  ASSERT_TRUE(client->set("ranks/walk/1/key", "1").ok());
  EXPECT_TRUE(ask("ranks/walk/1/", StoreOp::kGet, "ranks/walk/1/key"));
  uint64_t closed = 0;
  for (const std::string other :
       {"before", "muster/status/0", "ranks/walk/2/key", "ranks/walk/", "ranks/walk/1"})
    for (const StoreOp op : {StoreOp::kSet, StoreOp::kGet, StoreOp::kAdd, StoreOp::kClear}) {
      EXPECT_FALSE(ask("ranks/walk/1/", op, other)) << other;
      awaitCount(&StoreCounts::malformed, ++closed);
    }
  EXPECT_EQ(*client->get("ranks/walk/1/key", 0), "1");
}

/// Whatever part of the store its key is for.
TEST_F(HostilePeer, ReadsWhatOnlyNodeZeroMayChange) {
  StoreClient leader(server->connect("muster/").value(), {});
  ASSERT_TRUE(leader.set("node-0/news", "7").ok());
  uint64_t closed = 0;
  for (const std::string prefix : {"", "muster/", "muster/node-0/"}) {
    for (const StoreRequest& request :
         {StoreRequest{StoreOp::kSet, 0, 0, 0, "muster/node-0/news", "forged"},
          StoreRequest{StoreOp::kAdd, 0, 1, 0, "muster/node-0/news", ""},
          StoreRequest{StoreOp::kTouch, 0, 0, 0, "muster/node-0/news", "muster/node-0/news"},
          StoreRequest{StoreOp::kBarrier, 1000, 0, 1, "muster/node-0/news", ""},
          StoreRequest{StoreOp::kClear, 0, 0, 0, "muster/node-0/", ""},
          StoreRequest{StoreOp::kClear, 0, 0, 0, prefix.empty() ? "m" : prefix, ""}}) {
      RawPeer hostile(server->port());
      hostile.prove(kToken, prefix);
      hostile.send(encodeStoreRequest(request));
      EXPECT_TRUE(hostile.closedWithin(kGenerous)) << prefix << static_cast<int>(request.op);
      awaitCount(&StoreCounts::malformed, ++closed);
    }
    EXPECT_EQ(*client->get("muster/node-0/news", 0), "7");
  }
}

TEST_F(HostilePeer, WithAGiantLengthIsClosedBeforeAnyOfItComes) {
  for (const uint32_t length : {0xffffffffu, static_cast<uint32_t>(kStoreMaxRequest + 1), 0u, 28u}) {
    RawPeer peer(server->port());
    peer.prove(kToken);
    peer.send(lengthOf(length));
    EXPECT_TRUE(peer.closedWithin(kGenerous)) << length;
  }
  awaitCount(&StoreCounts::malformed, 4);
}

TEST_F(HostilePeer, WithGiantKeysCountsOrUnknownOperationsIsClosed) {
  StoreRequest key{StoreOp::kSet, 0, 0, 0, std::string(kStoreMaxKey + 1, 'k'), ""};
  StoreRequest none{StoreOp::kSet, 0, 0, 0, "", ""};
  StoreRequest ranks{StoreOp::kBarrier, 1000, 0, int64_t{1} << 40, "b", ""};
  StoreRequest rank{StoreOp::kBarrier, 1000, 5, 3, "b", ""};
  StoreRequest negative{StoreOp::kGet, -1, 0, 0, "k", ""};
  StoreRequest endless{StoreOp::kGet, int64_t{1} << 60, 0, 0, "k", ""};
  StoreRequest unknown{static_cast<StoreOp>(99), 0, 0, 0, "k", ""};
  uint64_t closed = 0;
  for (const StoreRequest& request : {key, none, ranks, rank, negative, endless, unknown}) {
    RawPeer peer(server->port());
    peer.prove(kToken);
    peer.send(encodeStoreRequest(request));
    EXPECT_TRUE(peer.closedWithin(kGenerous)) << closed;
    awaitCount(&StoreCounts::malformed, ++closed);
  }
}

TEST_F(HostilePeer, WhoseKeyClaimsMoreThanItsRequestIsClosed) {
  std::string request = encodeStoreRequest({StoreOp::kGet, 0, 0, 0, "abc", ""});
  request[kStoreLength + 1] = 100;  // the length of the key
  RawPeer peer(server->port());
  peer.prove(kToken);
  peer.send(request);
  EXPECT_TRUE(peer.closedWithin(kGenerous));
}

TEST_F(HostilePeer, ThatUsesANumberTwiceIsClosed) {
  RawPeer peer(server->port());
  peer.prove(kToken);
  peer.send(encodeStoreRequest({StoreOp::kGet, 60'000, 0, 0, "nothing", "", 7}));
  peer.send(encodeStoreRequest({StoreOp::kGet, 60'000, 0, 0, "nothing", "", 7}));
  EXPECT_TRUE(peer.closedWithin(kGenerous));
  awaitCount(&StoreCounts::malformed, 1);
}

TEST_F(HostilePeer, MayWithdrawWhatItNeverAsked) {
  RawPeer peer(server->port());
  peer.prove(kToken);
  for (const uint32_t id : {0u, 7u, 0xffffffffu})
    peer.send(encodeStoreRequest({StoreOp::kWithdraw, 0, 0, 0, "", "", id}));
  peer.send(encodeStoreRequest({StoreOp::kGet, 0, 0, 0, "before", "", 7}));
  EXPECT_EQ(peer.receive(kStoreLength + kStoreReplyHead + 1).back(), '1');
}

/// Thousands of waits of one connection: it is read no further, and the others are served.
TEST_F(HostilePeer, WithTooManyOpenRequestsWaitsForAnswers) {
  RawPeer peer(server->port());
  peer.prove(kToken);
  std::string flood;
  for (uint32_t id = 1; id <= 6000; ++id)
    flood += encodeStoreRequest({StoreOp::kGet, 60'000, 0, 0, "flood", "", id});
  std::thread sending([&] { peer.send(flood); });
  for (int i = 0; i < 100; ++i) EXPECT_EQ(*client->get("before", 0), "1");
  EXPECT_TRUE(client->set("flood", "x").ok());
  for (uint32_t id = 1; id <= 6000; ++id)
    ASSERT_EQ(peer.receive(kStoreLength + kStoreReplyHead + 1).size(), kStoreLength + kStoreReplyHead + 1)
        << id;
  sending.join();
}

/// Sends byte after byte, each in time, though all of them are not; whether the server closed it.
bool closedWhileTrickling(RawPeer& peer) {
  const double deadline = systemClock().now() + kGenerous;
  while (systemClock().now() < deadline) {
    if (peer.closedWithin(0.02)) return true;
    peer.send("x");
  }
  return false;
}

TEST_F(HostilePeer, ThatTricklesItsHandshakeIsTimedOut) {
  StoreLimits limits;
  limits.handshakeTimeout = 0.3;
  start(limits);
  RawPeer silent(server->port());
  RawPeer trickling(server->port());
  trickling.send(
      std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11));  // a hello of 512 bytes begins
  EXPECT_TRUE(closedWhileTrickling(trickling));
  EXPECT_TRUE(silent.closedWithin(kGenerous));
  awaitCount(&StoreCounts::late, 2);
}

TEST_F(HostilePeer, ThatTricklesARequestIsTimedOut) {
  StoreLimits limits;
  limits.transferTimeout = 0.3;
  start(limits);
  RawPeer length(server->port()), body(server->port());
  length.prove(kToken);
  body.prove(kToken);
  length.send("\x40");
  body.send(lengthOf(1000));
  EXPECT_TRUE(closedWhileTrickling(body));
  EXPECT_TRUE(length.closedWithin(kGenerous));
  awaitCount(&StoreCounts::late, 2);
}

TEST_F(HostilePeer, ThatDoesNotTakeItsAnswerIsTimedOut) {
  StoreLimits limits;
  limits.transferTimeout = 0.3;
  start(limits);
  ASSERT_TRUE(client->set("large", std::string(StoreClient::kMaxValue, 'x')).ok());
  std::vector<std::unique_ptr<RawPeer>> peers;
  // More than the socket's buffers take; some of it stays in the server.
  for (int i = 0; i < 4; ++i) {
    peers.push_back(std::make_unique<RawPeer>(server->port()));
    peers.back()->prove(kToken);
    for (const uint32_t id : {1u, 2u, 3u, 4u})
      peers.back()->send(encodeStoreRequest({StoreOp::kGet, 0, 0, 0, "large", "", id}));
  }
  const double deadline = systemClock().now() + kGenerous;
  while (server->counts().late < 4 && systemClock().now() < deadline) std::this_thread::yield();
  EXPECT_EQ(server->counts().late, 4u);
}

TEST_F(HostilePeer, ThatHalfClosesGivesItsPlaceAtABarrierBack) {
  RawPeer peer(server->port());
  peer.prove(kToken);
  peer.send(encodeStoreRequest({StoreOp::kBarrier, 60'000, 1, 2, "b", ""}));
  peer.halfClose();
  EXPECT_TRUE(peer.closedWithin(kGenerous));
  const Status status = client->barrier("b", 0, 2, 0.2);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().text(), HasSubstr("1 of 2 ranks came, missing: 1"));
}

TEST_F(HostilePeer, InCrowdsLosesTheOldestAndNeverTheProven) {
  StoreLimits limits;
  limits.strangers = 8;
  start(limits);
  std::vector<std::unique_ptr<RawPeer>> crowd;
  for (int i = 0; i < 200; ++i) crowd.push_back(std::make_unique<RawPeer>(server->port()));
  EXPECT_TRUE(crowd.front()->closedWithin(kGenerous));
  awaitCount(&StoreCounts::crowdedOut, 192);
  EXPECT_EQ(*client->get("before", 0), "1");
}

/// What a flood does that only connects and resets.
TEST_F(HostilePeer, ThatHangsUpBeforeProvingIsCountedAndTold) {
  start({});
  for (int i = 0; i < 20; ++i) {
    RawPeer peer(server->port());
    const linger reset{1, 0};
    setsockopt(peer.descriptor(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  }
  for (int i = 0; i < 10; ++i) RawPeer(server->port()).halfClose();
  awaitCount(&StoreCounts::cut, 30);
  EXPECT_THAT(turnedAway(server->counts()), HasSubstr("30 that hung up before proving the token"));
}

TEST_F(HostilePeer, BeyondTheConnectionLimitIsToldSo) {
  StoreLimits limits;
  limits.connections = 4;  // one of them is the fixture's own
  start(limits);
  std::vector<std::unique_ptr<RawPeer>> proven;
  for (int i = 0; i < 3; ++i) {
    proven.push_back(std::make_unique<RawPeer>(server->port()));
    proven.back()->prove(kToken);
  }
  // The last one's welcome may be on its way before the server has counted it.
  awaitCount(&StoreCounts::accepted, 4);
  StoreClientOptions options;
  options.address = {"127.0.0.1", server->port()};
  options.key = storeKey(kToken, "");
  options.who = "rank 5";
  const Status told = StoreClient(options).set("key", "x");
  ASSERT_FALSE(told.ok());
  EXPECT_THAT(told.error().text(), AllOf(HasSubstr("rank 5 cannot use the store at 127.0.0.1:"),
                                         HasSubstr("serves 4 connections already, which is its limit")));
  EXPECT_EQ(turnedAway(server->counts()),
            "the rendezvous turned away 1 connection: 1 beyond its limit of connections");
  EXPECT_EQ(*client->get("before", 0), "1");
  proven.clear();
  const double deadline = systemClock().now() + kGenerous;
  bool again = false;
  while (!again && systemClock().now() < deadline) again = StoreClient(options).set("key", "x").ok();
  EXPECT_TRUE(again);
}

TEST_F(HostilePeer, ManyWithGarbageDoNotDisturbOneThatWorks) {
  std::atomic<bool> done{false};
  std::thread attacker([&] {
    uint32_t random = 1;
    while (!done) {
      RawPeer peer(server->port());
      std::string garbage;
      for (int i = 0; i < 200; ++i)
        garbage += static_cast<char>((random = random * 1664525 + 1013904223) >> 24);
      peer.send(garbage);
    }
  });
  for (int i = 0; i < 300; ++i) {
    const std::string text = std::to_string(i);
    EXPECT_TRUE(client->set("key", text).ok());
    EXPECT_EQ(*client->get("key", 1), text);
  }
  done = true;
  attacker.join();
}

TEST_F(HostilePeer, WaitsForRoomWhereManySendLargeValuesAtOnce) {
  StoreLimits limits;
  limits.memory = 24u << 20;  // six megabytes of buffers: one or two requests of four at a time
  start(limits);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 5; ++rank)
    threads.emplace_back([&, rank] {
      StoreClientOptions options;
      options.address = {"127.0.0.1", server->port()};
      options.key = storeKey(kToken, "");
      StoreClient large(std::move(options));
      const Status status = large.set("large" + std::to_string(rank), std::string(4u << 20, 'x'));
      EXPECT_TRUE(status.ok()) << status.error().text();
    });
  for (std::thread& thread : threads) thread.join();
  // Six would be more than all memory: refused with its reason, and the connection goes on.
  EXPECT_THAT(client->set("large6", std::string(4u << 20, 'x')).error().text(),
              HasSubstr("more than 25165824 bytes"));
  EXPECT_EQ(*client->clear("large"), 5);
}

}  // namespace
}  // namespace muster
