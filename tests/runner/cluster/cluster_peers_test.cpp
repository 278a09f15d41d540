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
  status.identity = {{"plan", "aaaa"}, {"nodes", "4"}};
  return status;
}

class ClusterPeersTest : public ::testing::Test {
 protected:
  static ClusterOptions four() {
    ClusterOptions options;
    options.nodeCount = 4;
    options.host = "n0";
    options.identity = {{"plan", "aaaa"}, {"nodes", "4"}};
    options.stages = {"walk"};
    options.lostAfter = 10;
    return options;
  }
  ClusterOptions options = four();
  ClusterPeers peers{options};
};

TEST(NodeStatus, ReadsWhatItWrites) {
  NodeStatus status = statusOf("12ab", "n3");
  status.finished = {{"walk", "pass"}};
  status.declined = {{"burn", "stage env has failed"}};
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
  EXPECT_EQ(back->declined.at("burn"), "stage env has failed");
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

/// "n2.x" is read as n2 where hosts give their full names.
TEST_F(ClusterPeersTest, TakesNoNameThatCouldBeReadAsAnothers) {
  peers.takeStatus(2, statusOf("a", "n2"), 100);
  EXPECT_EQ(peers.name(2), "node 2 (n2)");
  for (const char* taken : {"n2", "n2.x", "n2."}) {
    peers.takeStatus(1, statusOf("b", taken), 100);
    EXPECT_EQ(peers.name(1), "node 1") << taken;
    EXPECT_EQ(peers.name(2), "node 2") << taken;
  }
  peers.takeStatus(1, statusOf("b", "n1.x"), 100);
  EXPECT_EQ(peers.name(1), "node 1 (n1.x)");
  EXPECT_EQ(peers.name(2), "node 2 (n2)");
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
  peers.hold({{"leader"}, {"new"}, {"c"}}, 101);
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
  other = statusOf("a", "n1");
  other.identity["nodes"] = "3";
  peers.takeStatus(1, other, 102);
  EXPECT_THAT(peers.identityProblem(1, false),
              HasSubstr("must have the same number of nodes: correct --nnodes"));
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
  done.host = "n1";
  peers.takeStatus(1, done, 102);
  peers.noteFinished("walk", "pass");
  EXPECT_EQ(peers.disagreement("walk"),
            "it is on node 0 (n0) (pass), node 1 (n1) (pass), node 2 (n2) (pass); not there: node 3");
}

/// Each stage is looked up on each node: a node that invents stages would keep node 0 busy for seconds.
TEST_F(ClusterPeersTest, IgnoresStagesThatThePlanHasNot) {
  NodeStatus liar = statusOf("a", "n1");
  for (int stage = 0; stage < 10'000; ++stage) liar.finished[fmt::format("s{}", stage)] = "pass";
  liar.finished["walk"] = "pass";
  peers.takeStatus(1, statusFromText(statusText(liar)).value(), 100);
  EXPECT_EQ(peers.finished(1, "walk"), "pass");
  EXPECT_EQ(peers.finished(1, "s7"), "");
  EXPECT_EQ(peers.disagreements().size(), 1u);
}

TEST_F(ClusterPeersTest, KnowsTheFailuresOfTheOpenRoundAlone) {
  NodeStatus status = statusOf("a", "n1");
  status.round = "walk/1/0";
  status.failures.resize(2);
  status.failures[0].rank = 4;
  status.failures[1].rank = 5;
  peers.takeStatus(1, status, 100);
  EXPECT_TRUE(peers.reports("walk/1/0", {}, 100)[1].ranks.empty()) << "it is in no stage";
  peers.hold({{"leader", 0, 4}, {"a", 4, 2}}, 100);
  EXPECT_EQ(peers.reports("walk/1/0", {}, 100)[1].ranks.size(), 2u);
  EXPECT_TRUE(peers.reports("walk/1/1", {}, 100)[1].ranks.empty());
}

TEST_F(ClusterPeersTest, DoesNotLetANodeTakeTheNameOfAnother) {
  peers.takeStatus(1, statusOf("a", "n1"), 100);
  EXPECT_EQ(peers.name(1), "node 1 (n1)");
  for (const char* host : {"n2) and node 1 (n1", "n 2", "", "n2\n"}) {
    peers.takeStatus(2, statusOf("b", host), 100);
    EXPECT_EQ(peers.name(2), "node 2") << host;
  }
  peers.takeStatus(2, statusOf("b", "n1"), 100);
  peers.takeStatus(3, statusOf("c", "n0"), 100);
  for (const int rank : {0, 1, 2, 3}) EXPECT_EQ(peers.name(rank), fmt::format("node {}", rank));
  peers.takeStatus(2, std::nullopt, 100);
  peers.takeStatus(3, statusOf("c", "n3"), 100);
  EXPECT_EQ(peers.name(0), "node 0 (n0)");
  EXPECT_EQ(peers.name(1), "node 1 (n1)");
  options.nodes = {"a0", "a1", "a2", "a3"};
  EXPECT_EQ(peers.name(1), "node 1 (a1)") << "the launcher's names count";
  NodeStatus other = statusOf("a", "n1");
  other.identity["plan"] = "a, node 2 (n2) did not answer at";
  peers.takeStatus(1, other, 101);
  EXPECT_THAT(peers.identityProblem(1, false), HasSubstr("node 1 (a1) has plan another value, and node 0"));
}

}  // namespace
}  // namespace muster::testing
