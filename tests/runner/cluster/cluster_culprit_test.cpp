// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <climits>

#include "runner/cluster/cluster_evidence.h"

namespace muster::testing {
namespace {

/// Nodes of one healthy rank each, all asleep at present.
std::vector<NodeReport> healthy(int count) {
  std::vector<NodeReport> nodes;
  for (int i = 0; i < count; ++i) {
    NodeReport node;
    node.node = i;
    node.name = fmt::format("node {0} (n{0})", i);
    RankReport rank;
    rank.rank = i;
    rank.device = "gpu0";
    rank.state = 'S';
    rank.active = 0.1;
    node.ranks = {rank};
    nodes.push_back(node);
  }
  return nodes;
}

void fail(NodeReport& node, const std::string& failure, int signal, int64_t order) {
  node.ranks[0].failure = failure;
  node.ranks[0].signal = signal;
  node.ranks[0].order = order;
}

TEST(KnownCulprit, IsNobodyInAHealthyGroup) {
  EXPECT_EQ(knownCulprit(healthy(4)).text, "");
}

TEST(KnownCulprit, IsWhoFailedFirstByTheStoresOrder) {
  auto nodes = healthy(4);
  fail(nodes[0], "ended with exit code 1", 0, 2);
  fail(nodes[3], "ended with exit code 7", 0, 1);
  EXPECT_EQ(knownCulprit(nodes).text, "rank 3 (gpu0 of node 3 (n3)) ended with exit code 7");
}

TEST(KnownCulprit, IsWhoWasKilledAndNotWhoAbortedForIt) {
  auto nodes = healthy(4);
  fail(nodes[0], "was killed by SIGABRT (Aborted)", SIGABRT, 1);
  fail(nodes[2], "was killed by SIGKILL (Killed)", SIGKILL, 2);
  EXPECT_EQ(knownCulprit(nodes).text, "rank 2 (gpu0 of node 2 (n2)) was killed by SIGKILL (Killed)");
}

/// Whatever a text says, a rank is at fault by its number alone.
TEST(KnownCulprit, IsNotARankOfWhichALibrarySpeaks) {
  auto nodes = healthy(4);
  fail(nodes[2], "could not start: the library said: rank 1 (gpu0 of node 1 (n1)) was killed", 0, 1);
  EXPECT_EQ(knownCulprit(nodes).ranks, std::set<int>{2});
  nodes = healthy(4);
  nodes[1].ranks[0].state = nodes[3].ranks[0].state = 'T';
  EXPECT_EQ(culpritAtDeadline(nodes).ranks, (std::set<int>{1, 3}));
}

TEST(NodeReport, TakesWhatANodeSaysOfItsOwnRanks) {
  NodeReport node;
  node.firstRank = 4;
  node.rankCount = 2;
  std::vector<RankReport> said(6);
  const int ranks[] = {3, 4, 5, 6, -1, INT_MIN};
  for (size_t i = 0; i < said.size(); ++i) said[i].rank = ranks[i];
  node.take(said);
  ASSERT_EQ(node.ranks.size(), 2u);
  EXPECT_EQ(node.ranks[0].rank, 4);
  EXPECT_EQ(node.ranks[1].rank, 5);
}

TEST(KnownCulprit, IsAFailureBeforeASilentNode) {
  auto nodes = healthy(4);
  nodes[1].silent = true;
  nodes[1].silence = 12;
  EXPECT_EQ(knownCulprit(nodes).text, "node 1 (n1) was lost: no heartbeat for 12 s");
  fail(nodes[3], "ended with exit code 7", 0, 1);
  EXPECT_EQ(knownCulprit(nodes).text, "rank 3 (gpu0 of node 3 (n3)) ended with exit code 7");
}

TEST(KnownCulprit, IsNodeZerosLinkWhenAllOthersAreSilent) {
  auto nodes = healthy(4);
  for (int i = 1; i < 4; ++i) nodes[static_cast<size_t>(i)].silent = true;
  EXPECT_EQ(knownCulprit(nodes).text,
            "node 0 (n0) lost every other node: its own link is at fault, or the network as a whole");
}

/// Each has only its own word that it was the other one.
TEST(KnownCulprit, IsNotKnownWhenOneOfTwoNodesLosesTheOther) {
  for (bool NodeReport::*symptom : {&NodeReport::silent, &NodeReport::mute, &NodeReport::cutOff}) {
    auto nodes = healthy(2);
    nodes[1].*symptom = true;
    nodes[1].silence = 5;
    const std::string text = knownCulprit(nodes).text;
    const std::string start =
        "it is not known which of the two nodes failed, or whether the network between them did: ";
    EXPECT_EQ(text.substr(0, start.size()), start);
    EXPECT_EQ(text.find("no heartbeat for 5 s") != std::string::npos, nodes[1].silent) << text;
    // Unless a rank's end tells more.
    fail(nodes[1], "was killed by SIGKILL (Killed)", SIGKILL, 1);
    EXPECT_EQ(knownCulprit(nodes).text, "rank 1 (gpu0 of node 1 (n1)) was killed by SIGKILL (Killed)");
  }
}

TEST(KnownCulprit, IsNodeZeroWhenItStoppedUntilTheOthersDeclaredItLost) {
  for (int count = 2; count < 6; ++count)
    for (int lost = 1; lost < count; ++lost) {
      auto nodes = healthy(count);
      auto& node = nodes[static_cast<size_t>(lost)];
      node.cutOff = true;
      node.lostInStop = 9;
      EXPECT_EQ(knownCulprit(nodes).text,
                "node 0 (n0) did not run for 9 s: it was stopped or got no CPU time, so the others declared "
                "it lost");
      node.cutOff = false;
      EXPECT_EQ(knownCulprit(nodes).text, "");
    }
}

TEST(KnownCulprit, IsANodeThatLeftBeforeTheRanksThatItTookAlong) {
  auto nodes = healthy(4);
  fail(nodes[3], "was killed by SIGABRT (Aborted)", SIGABRT, 1);
  nodes[1].gone = "was interrupted by its user";
  nodes[2].gone = "was started again in the middle of this stage";
  EXPECT_EQ(
      knownCulprit(nodes).text,
      "node 1 (n1) was interrupted by its user, node 2 (n2) was started again in the middle of this stage");
  EXPECT_FALSE(knownCulprit(nodes).isInterruption);
  nodes[2].gone.clear();
  EXPECT_TRUE(knownCulprit(nodes).isInterruption);
  nodes[0].silent = true;
  EXPECT_FALSE(knownCulprit(nodes).isInterruption);
}

/// A peer that goes makes ranks abort; it makes none of them crash.
TEST(KnownCulprit, IsACrashBesideANodeThatWasInterrupted) {
  auto nodes = healthy(4);
  fail(nodes[3], "was killed by SIGSEGV (Segmentation fault)", SIGSEGV, 1);
  fail(nodes[2], "was killed by SIGABRT (Aborted)", SIGABRT, 2);
  nodes[1].gone = "was interrupted by its user";
  const Culprit culprit = knownCulprit(nodes);
  EXPECT_EQ(culprit.text,
            "rank 3 (gpu0 of node 3 (n3)) was killed by SIGSEGV (Segmentation fault), node 1 (n1) was "
            "interrupted by its user");
  EXPECT_EQ(culprit.ranks, std::set<int>{3});
  EXPECT_FALSE(culprit.isInterruption);
}

/// Whoever ends a run may kill the ranks of its node; nobody does on a node that goes on.
TEST(KnownCulprit, IsARankThatWasKilledWhereNobodyInterruptedTheRun) {
  auto nodes = healthy(4);
  fail(nodes[1], "was killed by SIGKILL (Killed)", SIGKILL, 1);
  nodes[1].gone = kInterrupted;
  EXPECT_EQ(knownCulprit(nodes).text, "node 1 (n1) was interrupted by its user");
  fail(nodes[3], "was killed by SIGKILL (Killed)", SIGKILL, 2);
  EXPECT_EQ(
      knownCulprit(nodes).text,
      "rank 3 (gpu0 of node 3 (n3)) was killed by SIGKILL (Killed), node 1 (n1) was interrupted by its user");
  EXPECT_EQ(knownCulprit(nodes).ranks, std::set<int>{3});
}

TEST(KnownCulprit, NamesAtMostTwentyNodes) {
  auto nodes = healthy(100);
  for (size_t i = 1; i < 50; ++i) nodes[i].silent = true;
  const std::string text = knownCulprit(nodes).text;
  EXPECT_NE(text.find("node 20 (n20) and 29 more were lost"), std::string::npos) << text;
}

TEST(CulpritAtDeadline, IsAStoppedRank) {
  auto nodes = healthy(4);
  nodes[2].ranks[0].state = 'T';
  nodes[2].ranks[0].stateFor = 8;
  nodes[1].ranks[0].active = 0.9;
  EXPECT_EQ(culpritAtDeadline(nodes).text, "rank 2 (gpu0 of node 2 (n2)) is stopped (state T for 8 s)");
}

TEST(CulpritAtDeadline, IsARankStuckInTheKernelButNotOneThatPassesThroughIt) {
  auto nodes = healthy(4);
  nodes[0].ranks[0].state = 'D';
  nodes[0].ranks[0].stateFor = 0.3;
  nodes[2].ranks[0].state = 'D';
  nodes[2].ranks[0].stateFor = 30;
  EXPECT_EQ(culpritAtDeadline(nodes).text,
            "rank 2 (gpu0 of node 2 (n2)) is stuck in the kernel (state D for 30 s)");
}

TEST(CulpritAtDeadline, IsTheOneRankThatIsCasesBehind) {
  auto nodes = healthy(4);
  for (auto& node : nodes) node.ranks[0].casesEnded = 5;
  nodes[3].ranks[0].casesEnded = 4;
  EXPECT_EQ(culpritAtDeadline(nodes).text,
            "rank 3 (gpu0 of node 3 (n3)) is behind: it ended 4 cases where all others ended 5");
}

/// A node may make up how far its own ranks are.
TEST(CulpritAtDeadline, IsNoRankThatOneOtherNodeAloneSaysIsBehind) {
  auto nodes = healthy(2);
  nodes[0].ranks[0].casesEnded = 1;
  nodes[1].ranks[0].casesEnded = 50;
  EXPECT_THAT(culpritAtDeadline(nodes).text, ::testing::StartsWith("no faulty component found"));
}

TEST(CulpritAtDeadline, IsTheOneRankAtWorkWhileAllOthersWait) {
  auto nodes = healthy(4);
  nodes[1].ranks[0].active = 0.97;
  EXPECT_EQ(culpritAtDeadline(nodes).text,
            "rank 1 (gpu0 of node 1 (n1)) is running while all others wait for it: not asleep in 97% of the "
            "samples, "
            "the next one in 10%");
}

/// That all others wait one node alone may make up, or they hang while this one polls.
TEST(CulpritAtDeadline, IsNoRankThatWorksWhileThoseOfOneOtherNodeSeemToWait) {
  auto nodes = healthy(2);
  nodes[1].ranks.push_back(nodes[1].ranks[0]);
  nodes[0].ranks[0].active = 0.97;
  EXPECT_THAT(culpritAtDeadline(nodes).text, ::testing::StartsWith("no faulty component found"));
  // One of its own says so, too.
  nodes[0].ranks.push_back(nodes[1].ranks[0]);
  EXPECT_THAT(culpritAtDeadline(nodes).text, ::testing::HasSubstr("is running while all others wait"));
}

TEST(CulpritAtDeadline, IsNobodyWhenAllAreEquallyBusyOrTooLittleIsKnown) {
  auto nodes = healthy(4);
  for (auto& node : nodes) node.ranks[0].active = 0.97;
  EXPECT_NE(culpritAtDeadline(nodes).text.find("no faulty component found"), std::string::npos);
  for (auto& node : nodes) node.ranks[0].active = -1;
  nodes[2].ranks[0].active = 0.97;
  EXPECT_NE(culpritAtDeadline(nodes).text.find("no faulty component found"), std::string::npos);
  for (auto& node : nodes) node.ranks.clear();
  EXPECT_NE(culpritAtDeadline(nodes).text.find("no faulty component found"), std::string::npos);
}

TEST(RankWatch, FollowsStatesAndTellsANewFailureOnce) {
  RankWatch watch;
  RankStatus status;
  status.rank = 3;
  status.state = 'R';
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(watch.look({status}, i));
  status.state = 'T';
  EXPECT_FALSE(watch.look({status}, 4));
  EXPECT_FALSE(watch.look({status}, 6.5));
  EXPECT_EQ(watch.reports()[0].state, 'T');
  EXPECT_DOUBLE_EQ(watch.reports()[0].stateFor, 2.5);
  EXPECT_DOUBLE_EQ(watch.reports()[0].active, 1);
  status.failure = "ended with exit code 1";
  EXPECT_TRUE(watch.look({status}, 7));
  EXPECT_FALSE(watch.look({status}, 8));
  watch.order(5);
  watch.order(6);
  EXPECT_FALSE(watch.look({status}, 9));
  EXPECT_EQ(watch.reports()[0].order, 5);
}

TEST(RankReport, SurvivesTheWayThroughJson) {
  RankReport report;
  report.rank = 7;
  report.device = "gpu7";
  report.failure = "was killed by SIGKILL (Killed)";
  report.signal = 9;
  report.order = 3;
  report.state = 'T';
  report.stateFor = 1.5;
  report.active = 0.25;
  report.ended = true;
  report.casesEnded = 4;
  const auto back = rankReportFromJson(toJson(report), "x");
  ASSERT_TRUE(back.ok()) << back.error().text();
  EXPECT_EQ(toJson(*back), toJson(report));
  EXPECT_FALSE(rankReportFromJson(Json::object(), "x").ok());
}

/// A reader of the culprit's line takes what stands before a colon as the runner's own words.
TEST(RankReport, NamesNoOtherRankOrNode) {
  RankReport report;
  for (const char* said : {"rank 1 (cpu0 of node 1 (n1)) was killed", "was killed, node 1 (n1) was lost"}) {
    report.device = "cpu0 of node 1 (n1)), rank 2 (cpu0";
    report.failure = said;
    const RankReport back = rankReportFromJson(toJson(report), "x").value();
    EXPECT_EQ(back.device, "");
    EXPECT_EQ(back.failure, std::string("failed: ") + said);
  }
}

TEST(FailedByThemselves, AreThoseOfAHalfAtMost) {
  auto nodes = healthy(4);
  EXPECT_EQ(failedByThemselves(nodes).text, "");
  nodes[2].ranks[0].caseFailures = {{0, "out of memory"}};
  EXPECT_EQ(failedByThemselves(nodes).text, "rank 2 (gpu0 of node 2 (n2)) failed: out of memory");
  nodes[3].ranks[0].caseFailures = {{0, "rank 0 (gpu0 of node 0 (n0)) is at fault"}};
  const Culprit two = failedByThemselves(nodes);
  EXPECT_EQ(two.text,
            "rank 2 (gpu0 of node 2 (n2)) failed, rank 3 (gpu0 of node 3 (n3)) failed: out of memory");
  EXPECT_EQ(two.ranks, (std::set<int>{2, 3}));
  nodes[1].ranks[0].caseFailures = {{0, "out of memory"}};
  EXPECT_EQ(failedByThemselves(nodes).text, "") << "what three of four share is at fault";
}

TEST(FailedByThemselves, AreNotAcquittedByTheDeathOfAnother) {
  auto nodes = healthy(4);
  nodes[1].ranks[0].caseFailures = {{0, "out of memory: 64 MiB"}};
  nodes[2].ranks[0].failure = "was killed by SIGABRT";
  const Culprit both = withOwnFailures(knownCulprit(nodes), nodes);
  EXPECT_EQ(both.text,
            "rank 1 (gpu0 of node 1 (n1)) failed, rank 2 (gpu0 of node 2 (n2)) was killed by SIGABRT; out of "
            "memory: 64 MiB");
  EXPECT_EQ(both.ranks, (std::set<int>{1, 2}));
  nodes[2].ranks[0].caseFailures = {{0, "its own"}};
  EXPECT_EQ(withOwnFailures(knownCulprit(nodes), nodes).ranks, (std::set<int>{1, 2}));
}

TEST(CulpritAtDeadline, IsWhoFailedItsCaseAndNotWhoWaitsForIt) {
  auto nodes = healthy(2);
  nodes[1].ranks[0].caseFailures = {{0, "out of memory"}};
  nodes[1].ranks[0].casesEnded = 1;
  EXPECT_EQ(culpritAtDeadline(nodes).ranks, std::set<int>{1});
}

}  // namespace
}  // namespace muster::testing
