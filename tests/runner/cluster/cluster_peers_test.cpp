// SPDX-License-Identifier: Apache-2.0
// How statuses of other nodes are evaluated, invalid ones too.
#include "runner/cluster/cluster_peers.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::testing {
namespace {

using ::testing::HasSubstr;

NodeStatus statusOf(const std::string& nonce, const std::string& host) {
  NodeStatus status;
  status.nonce = nonce;
  status.host = host;
  status.identity = {{"plan", "aaaa"}};
  return status;
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

TEST(NodeStatus, ReadsWhatItWrites) {
  NodeStatus status = statusOf("12ab", "n3");
  status.finished = {{"walk", "pass"}};
  status.round = "burn/1/0";
  status.interrupted = status.ended = true;
  RankReport report;
  report.rank = 7;
  report.failure = "was killed";
  report.signal = 9;
  report.order = 2;
  status.failures = {report};
  const auto back = statusFromText(statusText(status));
  ASSERT_TRUE(back.ok()) << back.error().text();
  EXPECT_EQ(statusText(*back), statusText(status));
  EXPECT_EQ(back->failures.at(0).order, 2);
  EXPECT_EQ(back->finished.at("walk"), "pass");
}

TEST(NodeStatus, IsRefusedWhereItsTypesAreOthers) {
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
    const auto status = statusFromText(text);
    ASSERT_FALSE(status.ok()) << text;
    EXPECT_EQ(status.error().code, ErrorCode::kProtocol) << text;
  }
}

TEST_F(ClusterPeersTest, TellsWhoIsSilentAndWhoMayStillAnswer) {
  peers.takeStatus(1, statusOf("a", "n1"), 100);
  EXPECT_FALSE(peers.silent(1, 109));
  EXPECT_TRUE(peers.silent(1, 111));
  peers.takeHeartbeat(1, 110);
  EXPECT_FALSE(peers.silent(1, 111));
  EXPECT_TRUE(peers.silent(2, 111)) << "it never sent a status";
  EXPECT_TRUE(peers.mayStillAnswer(2, 111));
  peers.giveUp(2);
  EXPECT_FALSE(peers.mayStillAnswer(2, 111));
  EXPECT_FALSE(peers.mayStillAnswer(1, 200));
  EXPECT_EQ(peers.seenCount(), 1);
  EXPECT_EQ(peers.liveOthers(111), 1);
}

TEST_F(ClusterPeersTest, TellsANodeThatWasStartedAgainFromItsEarlierStart) {
  peers.takeStatus(1, statusOf("old", "n1"), 100);
  peers.hold({"leader", "new", "c"}, 101);
  EXPECT_FALSE(peers.startedAgain(1)) << "its new start answered before its first status";
  peers.takeStatus(1, statusOf("new", "n1"), 102);
  EXPECT_FALSE(peers.startedAgain(1));
  peers.takeStatus(1, statusOf("newer", "n1"), 103);
  EXPECT_EQ(peers.gone(1), "was started again in the middle of this stage");
  peers.release();
  EXPECT_EQ(peers.gone(1), "");
}

TEST_F(ClusterPeersTest, NamesWhatDiffersAndASignThatCannotBeRead) {
  peers.takeHeartbeat(1, 100);
  EXPECT_EQ(peers.identityProblem(1, false), "") << "its status is on the way";
  peers.takeStatus(1, std::nullopt, 100);
  EXPECT_THAT(peers.identityProblem(1, false), HasSubstr("node 1 sends heartbeats without an identity"));
  NodeStatus other = statusOf("a", "n1");
  other.identity["plan"] = "bbbb";
  peers.takeStatus(1, other, 101);
  EXPECT_EQ(peers.identityProblem(1, false),
            "node 1 (n1) has plan bbbb, and node 0 (n0) has aaaa; all nodes of a run must have the same");
}

TEST_F(ClusterPeersTest, SaysWhoHasFinishedAStage) {
  for (const int rank : {0, 1, 2}) peers.takeStatus(rank, statusOf("a", fmt::format("n{}", rank)), 100);
  EXPECT_EQ(peers.disagreement("walk"), "");
  NodeStatus done = statusOf("a", "n2");
  done.finished = {{"walk", "pass"}};
  peers.takeStatus(2, done, 101);
  EXPECT_EQ(peers.disagreement("walk"),
            "it is on node 2 (n2) (pass), and not on node 0 (n0), node 1 (n1); not there: node 3");
  EXPECT_EQ(peers.disagreements().size(), 1u);
}

TEST_F(ClusterPeersTest, KnowsTheFailuresOfTheOpenRoundAlone) {
  NodeStatus status = statusOf("a", "n1");
  status.round = "walk/1/0";
  status.failures.resize(2);
  peers.takeStatus(1, status, 100);
  EXPECT_EQ(peers.reports("walk/1/0", {}, 100)[1].ranks.size(), 2u);
  EXPECT_TRUE(peers.reports("walk/1/1", {}, 100)[1].ranks.empty());
}

}  // namespace
}  // namespace muster::testing
