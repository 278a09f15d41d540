// SPDX-License-Identifier: Apache-2.0
// Who may take part, under which rank, and who has finished what.
#include "runner/cluster/cluster_membership.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/runner/cluster/cluster_nodes.h"

namespace muster::testing {
namespace {

using ::testing::HasSubstr;

TEST(ClusterMembership, RefusesAWrongToken) {
  Nodes nodes(2);
  nodes.start(nodes.options(0));
  ClusterOptions wrong = nodes.options(1);
  wrong.token = "another secret";
  const Status joined = nodes.start(wrong).members().join(5);
  ASSERT_FALSE(joined.ok());
  EXPECT_EQ(joined.error().code, ErrorCode::kUsage);
  EXPECT_THAT(joined.error().text(), HasSubstr("cannot join the run"));
}

TEST(ClusterMembership, NamesWhatDiffersWithBothValuesOnBothSides) {
  Nodes nodes(2);
  ClusterLink& leader = nodes.start(nodes.options(0));
  ClusterOptions other = nodes.options(1);
  other.identity[1].second = "43";
  const Status joined = nodes.start(other).members().join(5);
  ASSERT_FALSE(joined.ok());
  EXPECT_EQ(joined.error().text(),
            "node 1 (n1) has seed 43, and node 0 (n0) has 42; all nodes of a run must have the same");
  ClusterStage stage(leader, "walk", 3);
  const ClusterEntry entry = stage.enter(1);
  EXPECT_EQ(entry.kind, ClusterEntry::Kind::kError);
  EXPECT_EQ(entry.why, joined.error().text());
}

TEST(ClusterMembership, RefusesASecondNodeUnderOneRank) {
  // Again and again, as the first may not have sent a heartbeat when the second comes.
  for (int round = 0; round < 8; ++round) {
    Nodes nodes(3);
    nodes.startAll();
    ClusterOptions twin = nodes.options(1);
    twin.host = "twin";
    const Status joined = nodes.start(twin).members().join(5);
    ASSERT_FALSE(joined.ok());
    EXPECT_THAT(joined.error().text(),
                HasSubstr("node rank 1 is already taken by host n1, and this is twin"));
  }
}

TEST(ClusterMembership, LetsANodeComeBackUnderItsRank) {
  Nodes nodes(2);
  nodes.startAll();
  nodes.lose(1);
  EXPECT_TRUE(nodes.start(nodes.options(1)).members().join(5).ok());
}

/// A node that goes on sending heartbeats and never says that it has ended keeps nobody for ever.
TEST(ClusterMembership, WaitsWithItsEndForOthersAsLongAsTheirPlanTakes) {
  for (const bool allLeave : {true, false}) {
    Nodes nodes(3);
    nodes.startAll();
    const auto together = nodes.onEach<bool>([&](ClusterLink& link) {
      link.members().rollCall(10);
      return link.options().nodeRank == 2 && !allLeave ? true
                                                       : link.members().leaveTogether(allLeave ? 600 : 0.3);
    });
    EXPECT_EQ(together[0], allLeave);
    EXPECT_TRUE(together[1] || !allLeave);
  }
}

TEST(ClusterMembership, SaysWhichNodesHaveFinishedAStageThatOthersHaveNot) {
  for (const std::set<int>& finished : {std::set<int>{0, 2}, {1, 2}, {0}}) {
    Nodes nodes(3);
    for (int rank = 0; rank < 3; ++rank) {
      ClusterOptions options = nodes.options(rank);
      if (finished.count(rank) > 0) options.finished = {{"walk", "pass"}};
      nodes.start(options);
    }
    std::string done, open;
    for (int rank = 0; rank < 3; ++rank) {
      std::string& list = finished.count(rank) > 0 ? done : open;
      list += fmt::format("{}node {} (n{}){}", list.empty() ? "" : ", ", rank, rank,
                          finished.count(rank) > 0 ? " (pass)" : "");
    }
    nodes.onEach<bool>([&](ClusterLink& link) {
      link.members().rollCall(10);
      if (finished.count(link.options().nodeRank) > 0) return true;
      const ClusterEntry entry = ClusterStage(link, "walk", 3600).enter(1);
      EXPECT_EQ(entry.kind, ClusterEntry::Kind::kError);
      EXPECT_THAT(entry.why, HasSubstr(fmt::format("it is on {}, and not on {};", done, open)));
      return true;
    });
  }
}

/// As far as node 0 knows, whoever of them asks.
TEST(ClusterMembership, TellsAllNodesOfAStageThatOneFinishes) {
  Nodes nodes(3);
  nodes.startAll();
  nodes.onEach<bool>([](ClusterLink& link) {
    if (link.options().nodeRank == 1) {
      link.members().noteFinished("walk", "pass");
      return true;
    }
    const ClusterEntry entry = ClusterStage(link, "walk", 3600).enter(1);
    EXPECT_EQ(entry.kind, ClusterEntry::Kind::kError);
    EXPECT_THAT(entry.why, HasSubstr("it is on node 1 (n1) (pass), and not on node 0 (n0), node 2 (n2);"));
    return true;
  });
}

}  // namespace
}  // namespace muster::testing
