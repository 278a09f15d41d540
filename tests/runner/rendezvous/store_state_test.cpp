// SPDX-License-Identifier: Apache-2.0
// Keys, barriers and waits with a clock of the test's own: who is answered when, and with what.
#include "runner/rendezvous/store_state.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace muster {
namespace {

using ::testing::HasSubstr;

class StoreStateTest : public ::testing::Test {
 protected:
  std::vector<StoreReply> ask(StorePeerId peer, StoreOp op, const std::string& key,
                              const std::string& value = "", int64_t timeoutMs = 0, int64_t number = 0,
                              int64_t count = 0, double now = 0) {
    std::vector<StoreReply> out;
    state.handle(peer, {op, timeoutMs, number, count, key, value}, now, out);
    return out;
  }
  std::vector<StoreReply> barrier(StorePeerId peer, int64_t rank, int64_t count, double now, double timeout) {
    return ask(peer, StoreOp::kBarrier, "b", "", static_cast<int64_t>(timeout * 1000), rank, count, now);
  }
  std::vector<StoreReply> expire(double now) {
    std::vector<StoreReply> out;
    state.proceed(now, out);
    return out;
  }

  StoreLimits limits{.keys = 3,
                     .memory = 2000,
                     .connections = 8,
                     .strangers = 8,
                     .handshakeTimeout = 5,
                     .transferTimeout = 5};
  StoreState state{limits};
};

TEST_F(StoreStateTest, AnswersAllThatWaitOnceAKeyIsSet) {
  EXPECT_TRUE(ask(1, StoreOp::kGet, "key", "", 5000).empty());
  EXPECT_TRUE(ask(2, StoreOp::kGet, "key", "", 9000).empty());
  EXPECT_DOUBLE_EQ(state.nextDeadline(), 5);
  const auto replies = ask(3, StoreOp::kSet, "key", "value");
  ASSERT_EQ(replies.size(), 3u);
  EXPECT_EQ(replies[0].value->text(), "value");
  EXPECT_EQ(replies[2].peer, 3u);
  EXPECT_TRUE(std::isinf(state.nextDeadline()));
  EXPECT_TRUE(expire(100).empty());
}

TEST_F(StoreStateTest, EndsAWaitAtItsOwnDeadline) {
  ask(1, StoreOp::kGet, "a", "", 5000);
  ask(2, StoreOp::kGet, "a", "", 9000);
  EXPECT_TRUE(expire(4.9).empty());
  const auto replies = expire(5);
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].peer, 1u);
  EXPECT_EQ(replies[0].answer, StoreAnswer::kTimeout);
  EXPECT_DOUBLE_EQ(state.nextDeadline(), 9);
}

TEST_F(StoreStateTest, TellsWhatChangedSinceAVersionTheOldestFirst) {
  StoreState large{StoreLimits()};
  const auto changes = [&](uint64_t since) {
    std::vector<StoreReply> out;
    large.handle(9, {StoreOp::kChanges, 0, static_cast<int64_t>(since), 0, "status/", ""}, 0, out);
    return decodeStoreChanges(out.at(0).text).value();
  };
  const auto put = [&](const std::string& key, const std::string& value) {
    std::vector<StoreReply> out;
    large.handle(1, {StoreOp::kSet, 0, 0, 0, key, value}, 0, out);
  };
  using Entries = std::vector<std::pair<std::string, std::string>>;
  put("status/2", "a");
  put("other", "b");
  put("status/1", "c");
  StoreChanges seen = changes(0);
  EXPECT_EQ(seen.entries, (Entries{{"2", "a"}, {"1", "c"}}));
  EXPECT_TRUE(changes(seen.version).entries.empty());
  put("status/2", "d");
  EXPECT_EQ(changes(seen.version).entries, (Entries{{"2", "d"}}));
  // More than goes into one answer comes in several, and nothing twice.
  for (int i = 0; i < 40; ++i) put(fmt::format("status/{}", 100 + i), std::string(100'000, 'x'));
  put("status/giant", std::string(2u << 20, 'x'));
  std::set<std::string> keys;
  int answers = 0;
  for (bool more = true; more; ++answers) {
    seen = changes(seen.version);
    more = seen.more;
    for (const auto& [key, value] : seen.entries) {
      EXPECT_TRUE(keys.insert(key).second) << key;
      EXPECT_EQ(value.empty(), key == "giant") << "what is too large is left out";
    }
  }
  EXPECT_EQ(keys.size(), 42u);
  EXPECT_GT(answers, 3);
}

/// A heartbeat is answered with news, once there are any, and its key grows whoever waits for what.
TEST_F(StoreStateTest, AnswersATouchWithWhatIsNewerThanItsVersion) {
  const auto touch = [&](StorePeerId peer, int64_t since, double now) {
    return ask(peer, StoreOp::kTouch, "beat", "news", 1000, since, 0, now);
  };
  const auto newsOf = [](const StoreReply& reply) {
    return decodeStoreChanges(reply.value ? reply.value->text() : reply.text).value();
  };
  EXPECT_TRUE(touch(1, 0, 0).empty());
  const std::string first = ask(9, StoreOp::kGet, "beat").at(0).value->text();
  const auto timeout = expire(1);
  ASSERT_EQ(timeout.size(), 1u);
  EXPECT_EQ(timeout[0].answer, StoreAnswer::kTimeout);

  EXPECT_TRUE(touch(1, 0, 1).empty());
  EXPECT_GT(std::stoi(ask(9, StoreOp::kGet, "beat").at(0).value->text()), std::stoi(first));
  const auto told = ask(2, StoreOp::kSet, "news", "lost");
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].peer, 1u);
  EXPECT_EQ(newsOf(told[0]).entries.at(0).second, "lost");
  const auto version = static_cast<int64_t>(newsOf(told[0]).version);

  EXPECT_TRUE(touch(1, version, 2).empty()) << "it knows that already";
  const auto late = touch(3, 0, 2);
  ASSERT_EQ(late.size(), 1u);
  EXPECT_EQ(newsOf(late[0]).entries.at(0).second, "lost");
  EXPECT_EQ(static_cast<int64_t>(newsOf(late[0]).version), version);
}

TEST_F(StoreStateTest, TakesTheRanksOfANodeAtABarrierTogetherAndLetsOneOfThemGo) {
  const auto come = [&](StorePeerId peer, int64_t rank, const std::vector<int64_t>& others, double now) {
    return ask(peer, StoreOp::kBarrier, "b", encodeStoreRanks(others), 1000, rank, 5, now);
  };
  EXPECT_TRUE(come(1, 0, {1, 2}, 0).empty());
  EXPECT_THAT(come(2, 3, {2}, 0).at(0).text, HasSubstr("rank 2 is there already"));
  EXPECT_THAT(come(2, 3, {3}, 0).at(0).text, HasSubstr("rank 3 is there already"));
  state.leaveRank(1, 1);
  state.leaveRank(1, 4);  // it never was there
  EXPECT_TRUE(come(2, 3, {4}, 0).empty());
  const auto broken = expire(1);
  ASSERT_EQ(broken.size(), 2u);
  EXPECT_EQ(broken[0].text, "4 of 5 ranks came, missing: 1; rank 0 gave up after 1 s");

  ask(9, StoreOp::kClear, "b");
  EXPECT_TRUE(come(1, 0, {1, 2}, 2).empty());
  const auto open = come(2, 3, {4}, 2);
  ASSERT_EQ(open.size(), 2u) << "one answer for each node";
  EXPECT_EQ(open[0].answer, StoreAnswer::kOk);
  EXPECT_EQ(state.memory(), 0u);
}

TEST_F(StoreStateTest, CountsThoseWhoWaitInItsMemory) {
  int refused = 0;
  for (StorePeerId peer = 1; peer <= 100; ++peer)
    for (const StoreReply& reply : ask(peer, StoreOp::kGet, "nobody sets it", "", 5000))
      if (reply.answer == StoreAnswer::kRefused) ++refused;
  EXPECT_GT(refused, 50);
  EXPECT_EQ(state.noRoom(), static_cast<uint64_t>(refused));
  expire(6);
  EXPECT_EQ(state.memory(), 0u);
}

TEST_F(StoreStateTest, ForgetsAPeerThatLeft) {
  ask(1, StoreOp::kGet, "a", "", 5000);
  state.leave(1);
  EXPECT_EQ(ask(2, StoreOp::kSet, "a", "x").size(), 1u);
  barrier(3, 0, 2, 0, 5);
  state.leave(3);
  EXPECT_TRUE(barrier(4, 0, 2, 0, 5).empty()) << "its place is free again";
  EXPECT_EQ(barrier(5, 1, 2, 0, 5).size(), 2u);
}

TEST_F(StoreStateTest, OpensABarrierForAllAtOnceAndAgain) {
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(barrier(1, 0, 3, 0, 5).empty());
    EXPECT_TRUE(barrier(2, 2, 3, 0, 5).empty());
    const auto replies = barrier(3, 1, 3, 0, 5);
    ASSERT_EQ(replies.size(), 3u);
    for (const StoreReply& reply : replies) EXPECT_EQ(reply.answer, StoreAnswer::kOk);
  }
}

TEST_F(StoreStateTest, NamesTheSameMissingRanksToAllThatWaitAndToThoseWhoComeLater) {
  barrier(1, 0, 4, 0, 2);
  barrier(2, 2, 4, 0, 60);
  const auto replies = expire(2);
  ASSERT_EQ(replies.size(), 2u) << "the first deadline ends the barrier for all";
  for (const StoreReply& reply : replies) {
    EXPECT_EQ(reply.answer, StoreAnswer::kTimeout);
    EXPECT_EQ(reply.text, "2 of 4 ranks came, missing: 1, 3; rank 0 gave up after 2 s");
  }
  const auto late = barrier(3, 1, 4, 3, 60);
  ASSERT_EQ(late.size(), 1u);
  EXPECT_EQ(late[0].text, "2 of 4 ranks came, missing: 1, 3; rank 0 gave up after 2 s");
  EXPECT_TRUE(std::isinf(state.nextDeadline()));
  ask(4, StoreOp::kClear, "b");
  EXPECT_TRUE(barrier(1, 0, 4, 4, 2).empty()) << "cleared, the name is free again";
}

TEST_F(StoreStateTest, NamesOnlySomeOfManyMissingRanks) {
  barrier(1, 0, 1 << 20, 0, 1);
  EXPECT_THAT(expire(1).at(0).text, HasSubstr("1 of 1048576 ranks came, missing: 1, 2, 3"));
  EXPECT_LT(barrier(2, 1, 1 << 20, 2, 1).at(0).text.size(), 200u);
}

TEST_F(StoreStateTest, RefusesASecondRankOfTheSameNumberAndAnotherCount) {
  barrier(1, 0, 3, 0, 5);
  EXPECT_EQ(barrier(2, 0, 3, 0, 5).at(0).text, "rank 0 is there already");
  EXPECT_EQ(barrier(2, 1, 4, 0, 5).at(0).text, "rank 1 expects 4 ranks, the others there expect 3");
  EXPECT_TRUE(barrier(2, 1, 3, 0, 5).empty());
}

TEST_F(StoreStateTest, BoundsTheNumberOfKeysAndBarriers) {
  EXPECT_EQ(ask(1, StoreOp::kSet, "1").at(0).answer, StoreAnswer::kOk);
  EXPECT_EQ(ask(1, StoreOp::kSet, "2").at(0).answer, StoreAnswer::kOk);
  EXPECT_TRUE(barrier(2, 0, 2, 0, 5).empty());
  EXPECT_THAT(ask(1, StoreOp::kSet, "3").at(0).text, HasSubstr("it may hold 3"));
  EXPECT_THAT(ask(1, StoreOp::kAdd, "4").at(0).text, HasSubstr("it may hold 3"));
  EXPECT_EQ(ask(1, StoreOp::kSet, "2", "new").at(0).answer, StoreAnswer::kOk) << "an old key is no new one";
  EXPECT_EQ(ask(1, StoreOp::kBarrier, "other", "", 1, 0, 2).at(0).answer, StoreAnswer::kRefused);
}

TEST_F(StoreStateTest, BoundsMemoryAndFreesWhatIsReplacedOrCleared) {
  EXPECT_EQ(ask(1, StoreOp::kSet, "a", std::string(1500, 'x')).at(0).answer, StoreAnswer::kOk);
  EXPECT_THAT(ask(1, StoreOp::kSet, "b", std::string(600, 'x')).at(0).text,
              HasSubstr("more than 2000 bytes"));
  EXPECT_EQ(ask(1, StoreOp::kSet, "a", std::string(100, 'x')).at(0).answer, StoreAnswer::kOk);
  EXPECT_EQ(ask(1, StoreOp::kSet, "b", std::string(600, 'x')).at(0).answer, StoreAnswer::kOk);
  ask(1, StoreOp::kClear, "a");
  ask(1, StoreOp::kClear, "b");
  EXPECT_EQ(state.memory(), 0u);
}

TEST_F(StoreStateTest, KeepsRoomForRunnersWhateverRanksWrite) {
  StoreLimits small = limits;
  small.keys = 8;
  StoreState shared(small);
  const auto put = [&](const std::string& key, size_t size) {
    std::vector<StoreReply> out;
    shared.handle(1, {StoreOp::kSet, 0, 0, 0, key, std::string(size, 'x')}, 0, out);
    return out.at(0);
  };
  size_t size = 1024;
  for (int key = 0; size > 0; ++key)
    if (put(fmt::format("ranks/{}", key), size).answer == StoreAnswer::kRefused) size /= 2;
  EXPECT_EQ(put("ranks/more", 200).text, "the store would hold more than 1500 bytes of ranks");
  EXPECT_LE(shared.memory(), 1500u);
  const uint64_t refused = shared.noRoomForRanks();
  EXPECT_GT(refused, 0u);
  EXPECT_EQ(put("muster/status/1", 100).answer, StoreAnswer::kOk);
  std::vector<StoreReply> out;
  shared.handle(2, {StoreOp::kTouch, 1000, 0, 0, "muster/beat/1", "muster/news"}, 0, out);
  EXPECT_TRUE(out.empty()) << "it waits for news";
  EXPECT_EQ(shared.noRoom(), refused);

  shared.handle(1, {StoreOp::kClear, 0, 0, 0, "ranks/", ""}, 0, out);
  for (int key = 0; key < 6; ++key)
    EXPECT_EQ(put(fmt::format("ranks/{}", key), 0).answer, StoreAnswer::kOk) << key;
  EXPECT_EQ(put("ranks/6", 0).text, "the store holds 6 keys of ranks already, it may hold 6");
  EXPECT_EQ(put("muster/status/1", 100).answer, StoreAnswer::kOk);
}

TEST_F(StoreStateTest, CountsAValueUntilItsLastReaderIsDone) {
  ask(1, StoreOp::kSet, "a", std::string(1500, 'x'));
  auto slow = ask(2, StoreOp::kGet, "a");
  ask(1, StoreOp::kClear, "a");
  EXPECT_EQ(state.memory(), 1500u) << "a slow reader still holds it";
  EXPECT_EQ(ask(1, StoreOp::kSet, "a", std::string(1500, 'x')).at(0).answer, StoreAnswer::kRefused);
  slow.clear();
  EXPECT_EQ(state.memory(), 0u);
}

}  // namespace
}  // namespace muster
