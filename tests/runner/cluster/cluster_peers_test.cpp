// SPDX-License-Identifier: Apache-2.0
// What is made of the signs of other nodes, also of those that are none.
#include "runner/cluster/cluster_peers.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::testing {
namespace {

using ::testing::HasSubstr;

NodeSign signOf(const std::string& nonce, const std::string& host) {
  NodeSign sign;
  sign.nonce = nonce;
  sign.host = host;
  sign.identity = {{"plan", "aaaa"}};
  return sign;
}

class ClusterPeersTest : public ::testing::Test {
 protected:
  static ClusterOptions four() {
    ClusterOptions options;
    options.nodeCount = 4;
    options.host = "n0";
    options.identity = {{"plan", "aaaa"}};
    options.lostAfter = 10;
    return options;
  }
  ClusterOptions options = four();
  ClusterPeers peers{options};
};

TEST(NodeSign, ReadsWhatItWrites) {
  NodeSign sign = signOf("12ab", "n3");
  sign.finished = {{"walk", "pass"}};
  sign.round = "burn/1/0";
  sign.interrupted = sign.ended = true;
  RankReport report;
  report.rank = 7;
  report.failure = "was killed";
  report.signal = 9;
  report.order = 2;
  sign.failures = {report};
  const auto back = signFromText(signText(sign));
  ASSERT_TRUE(back.ok()) << back.error().text();
  EXPECT_EQ(signText(*back), signText(sign));
  EXPECT_EQ(back->failures.at(0).order, 2);
  EXPECT_EQ(back->finished.at("walk"), "pass");
}

TEST(NodeSign, IsRefusedWhereItsTypesAreOthers) {
  for (const char* text :
       {"", "[]", "7", "null", "{}", "{\"nonce\": 1, \"host\": \"n\", \"identity\": {}}",
        "{\"nonce\": \"a\", \"host\": [], \"identity\": {}}",
        "{\"nonce\": \"a\", \"host\": \"n\", \"identity\": 3}",
        "{\"nonce\": \"a\", \"host\": \"n\", \"identity\": {\"plan\": 4}}",
        "{\"nonce\": \"a\", \"host\": \"n\", \"identity\": {}, \"finished\": {\"walk\": 1}}",
        "{\"nonce\": \"a\", \"host\": \"n\", \"identity\": {}, \"round\": {}}",
        "{\"nonce\": \"a\", \"host\": \"n\", \"identity\": {}, \"failures\": 1}",
        "{\"nonce\": \"a\", \"host\": \"n\", \"identity\": {}, \"failures\": [1]}",
        "{\"nonce\": \"a\", \"host\": \"n\", \"identity\": {}, \"failures\": [{\"rank\": \"x\"}]}",
        "{\"nonce\": \"a\", \"host\": \"n\", \"identity\": {}, \"ended\": \"yes\"}"}) {
    const auto sign = signFromText(text);
    ASSERT_FALSE(sign.ok()) << text;
    EXPECT_EQ(sign.error().code, ErrorCode::kProtocol) << text;
  }
}

TEST_F(ClusterPeersTest, TellsWhoIsSilentAndWhoMayStillAnswer) {
  peers.takeSign(1, signOf("a", "n1"), 100);
  EXPECT_FALSE(peers.silent(1, 109));
  EXPECT_TRUE(peers.silent(1, 111));
  peers.takeHeartbeat(1, 110);
  EXPECT_FALSE(peers.silent(1, 111));
  EXPECT_TRUE(peers.silent(2, 111)) << "it never gave a sign";
  EXPECT_TRUE(peers.mayStillAnswer(2, 111));
  peers.giveUp(2);
  EXPECT_FALSE(peers.mayStillAnswer(2, 111));
  EXPECT_FALSE(peers.mayStillAnswer(1, 200));
  EXPECT_EQ(peers.seenCount(), 1);
  EXPECT_EQ(peers.liveOthers(111), 1);
}

TEST_F(ClusterPeersTest, TellsANodeThatWasStartedAgainFromItsEarlierStart) {
  peers.takeSign(1, signOf("old", "n1"), 100);
  peers.hold({"leader", "new", "c"}, 101);
  EXPECT_FALSE(peers.startedAgain(1)) << "its new start answered before its first sign";
  peers.takeSign(1, signOf("new", "n1"), 102);
  EXPECT_FALSE(peers.startedAgain(1));
  peers.takeSign(1, signOf("newer", "n1"), 103);
  EXPECT_EQ(peers.gone(1), "was started again in the middle of this stage");
  peers.release();
  EXPECT_EQ(peers.gone(1), "");
}

TEST_F(ClusterPeersTest, NamesWhatDiffersAndASignThatCannotBeRead) {
  peers.takeHeartbeat(1, 100);
  EXPECT_EQ(peers.identityProblem(1, false), "") << "its sign is on the way";
  peers.takeSign(1, std::nullopt, 100);
  EXPECT_THAT(peers.identityProblem(1, false), HasSubstr("node 1 sends heartbeats without an identity"));
  NodeSign other = signOf("a", "n1");
  other.identity["plan"] = "bbbb";
  peers.takeSign(1, other, 101);
  EXPECT_EQ(peers.identityProblem(1, false),
            "node 1 (n1) has plan bbbb, and node 0 (n0) has aaaa; all nodes of a run must have the same");
}

TEST_F(ClusterPeersTest, SaysWhoHasFinishedAStage) {
  for (const int rank : {0, 1, 2}) peers.takeSign(rank, signOf("a", fmt::format("n{}", rank)), 100);
  EXPECT_EQ(peers.disagreement("walk"), "");
  NodeSign done = signOf("a", "n2");
  done.finished = {{"walk", "pass"}};
  peers.takeSign(2, done, 101);
  EXPECT_EQ(peers.disagreement("walk"),
            "it is on node 2 (n2) (pass), and not on node 0 (n0), node 1 (n1); not there: node 3");
  EXPECT_EQ(peers.disagreements().size(), 1u);
}

TEST_F(ClusterPeersTest, KnowsTheFailuresOfTheOpenRoundAlone) {
  NodeSign sign = signOf("a", "n1");
  sign.round = "walk/1/0";
  sign.failures.resize(2);
  peers.takeSign(1, sign, 100);
  EXPECT_EQ(peers.reports("walk/1/0", {}, 100)[1].ranks.size(), 2u);
  EXPECT_TRUE(peers.reports("walk/1/1", {}, 100)[1].ranks.empty());
}

}  // namespace
}  // namespace muster::testing
