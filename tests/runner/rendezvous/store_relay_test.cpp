// SPDX-License-Identifier: Apache-2.0
// What a relay passes on, and when: over a connection and with a clock of the test's own.
#include "runner/rendezvous/store_relay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Keeps what is sent, and brings the answers that the test gives it.
class FakeUplink : public StoreUplink {
 public:
  Status connect(double /*now*/) override { return {}; }
  [[nodiscard]] bool connected() const override { return true; }
  void put(const StoreRequest& request) override { sent.push_back(request); }
  Status proceed(std::vector<StoreResponse>& out) override {
    out = std::exchange(answers, {});
    return std::exchange(failure, {});
  }
  [[nodiscard]] int descriptor() const override { return -1; }
  [[nodiscard]] size_t backlog() const override { return 0; }
  void stop() override {}

  std::vector<StoreRequest> sent;
  std::vector<StoreResponse> answers;
  Status failure;
};

class StoreRelayTest : public ::testing::Test {
 protected:
  StoreRelayTest() {
    auto made = std::make_unique<FakeUplink>();
    uplink = made.get();
    StoreRelayOptions options;
    options.prefix = "ranks/";
    options.who = "node 1";
    relay = std::make_unique<StoreRelay>(options, std::move(made));
    for (int process = 0; process < 3; ++process) relay->attach("walk/");
  }

  std::vector<StoreReply> come(int64_t rank, double now, int64_t timeoutMs = 60000) {
    std::vector<StoreReply> out;
    StoreRequest request;
    request.op = StoreOp::kBarrier;
    request.timeoutMs = timeoutMs;
    request.number = rank;
    request.count = 9;
    request.key = "walk/step";
    relay->handle(static_cast<StorePeerId>(100 + rank), request, now, out);
    return out;
  }
  std::vector<StoreReply> proceed(double now) {
    std::vector<StoreReply> out;
    relay->proceed(now, out);
    return out;
  }

  FakeUplink* uplink = nullptr;
  std::unique_ptr<StoreRelay> relay;
};

TEST_F(StoreRelayTest, PassesTheRanksOfANodeOnTogetherOnceAllAreThere) {
  come(4, 0);
  come(3, 0, 5000);
  EXPECT_THAT(uplink->sent, IsEmpty());
  come(5, 0.001);
  ASSERT_EQ(uplink->sent.size(), 1u);
  const StoreRequest& sent = uplink->sent[0];
  EXPECT_EQ(sent.key, "ranks/walk/step");
  EXPECT_EQ(sent.number, 4);
  EXPECT_THAT(decodeStoreRanks(sent.value), ElementsAre(3, 5));
  EXPECT_EQ(sent.timeoutMs, 4999) << "the first that gives up ends it for all";
  uplink->answers = {{StoreAnswer::kOk, sent.id, ""}};
  EXPECT_EQ(proceed(0.002).size(), 3u);
}

TEST_F(StoreRelayTest, WaitsNoLongerThanAMomentForTheOthersOfItsNode) {
  come(3, 0);
  const double due = relay->nextDeadline();
  EXPECT_LE(due, 0.05);
  proceed(due);
  ASSERT_EQ(uplink->sent.size(), 1u);
  come(4, 1);
  come(5, 1);
  ASSERT_EQ(uplink->sent.size(), 2u) << "with the one before all are there";
  EXPECT_THAT(decodeStoreRanks(uplink->sent[1].value), ElementsAre(5));
}

TEST_F(StoreRelayTest, WaitsForNobodyWhoseProcessIsGone) {
  come(3, 0);
  come(4, 0);
  relay->detach("walk/");
  proceed(0.001);
  EXPECT_EQ(uplink->sent.size(), 1u);
}

TEST_F(StoreRelayTest, WithdrawsOneOfSeveralRanksAndTheLastWithItsRequest) {
  for (const int64_t rank : {3, 4, 5}) come(rank, 0);
  relay->leave(104);
  relay->leave(103);
  relay->leave(105);
  ASSERT_EQ(uplink->sent.size(), 4u);
  EXPECT_EQ(uplink->sent[1].count, 1);
  EXPECT_EQ(uplink->sent[1].number, 4);
  EXPECT_EQ(uplink->sent[3].count, 0);
  EXPECT_EQ(uplink->sent[3].id, uplink->sent[0].id);
  come(3, 1);
  relay->leave(103);
  EXPECT_EQ(relay->nextDeadline(), std::numeric_limits<double>::infinity()) << "it was not passed on yet";
}

TEST_F(StoreRelayTest, TellsThoseWhoGatherThatTheStoreWasLost) {
  come(3, 0);
  EXPECT_THAT(come(3, 0).at(0).text, HasSubstr("rank 3 is there already"));
  uplink->failure = Error{ErrorCode::kIo, "it is gone", ""};
  const auto told = proceed(0.001);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].answer, StoreAnswer::kUnavailable);
  EXPECT_THAT(told[0].text, HasSubstr("node 1 lost the store"));
}

}  // namespace
}  // namespace muster
