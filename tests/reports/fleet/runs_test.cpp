// SPDX-License-Identifier: Apache-2.0
// Which records are of one run, by the groups that they met in.
#include "reports/fleet/read/runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/fleet/read/name_table.h"

namespace muster::fleet {
namespace {

using ::testing::ElementsAre;

class FleetRuns : public ::testing::Test {
 protected:
  /// A record of node `rank` of `count`, which met others in these groups, a stage each; "": it met nobody.
  void add(int rank, int count, const std::vector<std::string>& groups, const std::string& name = "") {
    NodeSummary node;
    node.node = name.empty() ? "n" + std::to_string(rank) : name;
    node.nodeRank = rank;
    node.nodeCount = count;
    for (const std::string& group : groups) {
      node.stages.emplace_back();
      node.stages.back().scope = Scope::kCluster;
      node.stages.back().groupId = records_.names->text(group);
    }
    records_.nodes.push_back(std::move(node));
  }
  FleetRecords records_;
};

TEST_F(FleetRuns, AreOfThoseThatMet) {
  add(0, 3, {"a", "b"});
  add(1, 3, {"", "b"});
  add(2, 3, {"a", ""});
  add(0, 3, {"c"});
  EXPECT_THAT(runsOf(records_), ElementsAre("a", "b", "a", "c"))
      << "one alone says that b is of the same run";
  records_.nodes[1].stages[0].groupId = records_.names->text("a");
  EXPECT_THAT(runsOf(records_), ElementsAre("a", "a", "a", "c"));
}

TEST_F(FleetRuns, AreNotMadeOneByOneRecord) {
  for (const auto& [rank, node] : {std::pair{0, "a0"}, {1, "a1"}}) add(rank, 3, {"a"}, node);
  for (const auto& [rank, node] : {std::pair{0, "b0"}, {1, "b1"}}) add(rank, 3, {"b"}, node);
  add(2, 3, {"a", "b"}, "x");
  EXPECT_THAT(runsOf(records_), ElementsAre("a", "a", "b", "b", "a"));
  records_.nodes.back().node = "a2";
  add(2, 3, {"a", "b"}, "stranger");
  EXPECT_THAT(runsOf(records_, {"a0", "a1", "a2", "b0", "b1"}), ElementsAre("a", "a", "b", "b", "a", "a"));
}

TEST_F(FleetRuns, TakeInWhoMetNobodyWhereOnlyOneLacksIt) {
  add(0, 2, {"a"});
  add(1, 2, {""});
  EXPECT_THAT(runsOf(records_), ElementsAre("a", "a"));
  add(0, 2, {"b"});
  EXPECT_THAT(runsOf(records_), ElementsAre("a", "", "b")) << "both lack it";
  add(1, 2, {"b"});
  EXPECT_THAT(runsOf(records_), ElementsAre("a", "a", "b", "b"));
}

/// A first attempt in which it met nobody is not of the run that then had its number.
TEST_F(FleetRuns, DoNotTakeInWhoseNumberTheyHave) {
  add(0, 2, {"a"});
  add(1, 2, {"a"});
  add(0, 2, {""});
  EXPECT_THAT(runsOf(records_), ElementsAre("a", "a", ""));
}

TEST_F(FleetRuns, AreUnknownWithoutGroups) {
  add(0, 2, {""});
  add(1, 2, {});
  add(0, 1, {""});
  EXPECT_THAT(runsOf(records_), ElementsAre("", "", ""));
}

}  // namespace
}  // namespace muster::fleet
