// SPDX-License-Identifier: Apache-2.0
// Who was which node, by the names that all took down.
#include "reports/fleet/blame/roster.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/fleet/read/name_table.h"

namespace muster::fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

const StageOfRun kStage{"run", 0};

class RosterTest : public ::testing::Test {
 protected:
  /// The record of `node`, which says that it was `number` and names these, of two ranks each, from 0 on.
  void hear(const std::string& node, int number, const std::vector<std::string>& around,
            const StageOfRun& stage = kStage) {
    NodeSummary record;
    record.node = node;
    record.nodeRank = number;
    StageSummary said;
    for (size_t other = 0; other < around.size(); ++other)
      if (!around[other].empty())
        said.around.push_back(
            {static_cast<int>(other), names_.text(around[other]), 2 * static_cast<int>(other), 2});
    roster_.hear(stage, record, said);
  }

  FleetNames names_;
  Roster roster_{names_};
};

TEST_F(RosterTest, BelievesMostAndTwoAtLeast) {
  hear("n0", 0, {"n0", "n1", "n2"});
  hear("n1", 1, {"n0", "n1", "n2"});
  hear("liar", 2, {"n1", "n0", "liar"});
  roster_.settle();
  EXPECT_THAT(roster_.meetings().at(kStage).nodes, ElementsAre(Pair(0, "n0"), Pair(1, "n1"), Pair(2, "n2")));
  EXPECT_EQ(roster_.nodeOf("run", 2), "n2");
  EXPECT_EQ(roster_.contradicts("run", "n1", 1), "");
  EXPECT_EQ(roster_.contradicts("run", "liar", 2), "that it was n2");
  EXPECT_EQ(roster_.contradicts("run", "n1", 7), "that n1 was node 1");
  EXPECT_EQ(roster_.ownerOf(kStage, 3), "n1");
  EXPECT_EQ(roster_.ownerOf(kStage, 6), "");
  EXPECT_TRUE(roster_.knows("run", "n2"));
  EXPECT_FALSE(roster_.knows("run", "liar"));
}

TEST_F(RosterTest, BelievesNobodyAloneNorHalf) {
  hear("n0", 0, {"n0", "n1"});
  hear("n1", 1, {"n9", "n1"});
  roster_.settle();
  EXPECT_THAT(roster_.meetings().at(kStage).nodes, ElementsAre(Pair(1, "n1")));
  EXPECT_EQ(roster_.nodeOf("run", 0), "");
  EXPECT_EQ(roster_.contradicts("run", "n0", 0), "");
}

/// A node that went on with its run says the same again, and one that says two things has one voice for each.
TEST_F(RosterTest, HearsEachNodeOnce) {
  for (int times = 0; times < 3; ++times) hear("liar", 0, {"liar", "n9"});
  hear("n1", 1, {"n0", "n1"});
  hear("n2", 2, {"n0", "n1", "n2"});
  roster_.settle();
  EXPECT_THAT(roster_.meetings().at(kStage).nodes, ElementsAre(Pair(0, "n0"), Pair(1, "n1")));
  EXPECT_THAT(roster_.meetings().at(kStage).speakers, SizeIs(3));
}

/// The number of one that left the run was given to another, who met the others in a later stage.
TEST_F(RosterTest, TakesEitherNodeForANumberOfWhichItsMeetingsDiffer) {
  const StageOfRun later{"run", 1};
  for (const int node : {0, 1}) {
    hear(fmt::format("n{}", node), node, {"n0", "n1", "n2"});
    hear(fmt::format("n{}", node), node, {"n0", "n1", "n9"}, later);
  }
  hear("n9", 2, {"n0", "n1", "n9"}, later);
  roster_.settle();
  for (const char* node : {"n2", "n9"}) EXPECT_EQ(roster_.contradicts("run", node, 2), "") << node;
  EXPECT_EQ(roster_.contradicts("run", "n5", 2), "that it was n2");
  EXPECT_EQ(roster_.nodeOf("run", 2), "");
}

TEST_F(RosterTest, KnowsNothingWithoutNames) {
  hear("n0", 0, {});
  hear("n1", 1, {});
  roster_.settle();
  EXPECT_THAT(roster_.meetings().at(kStage).nodes, IsEmpty());
  EXPECT_EQ(roster_.contradicts("another run", "n0", 0), "");
  EXPECT_EQ(roster_.ownerOf({"another run", 0}, 0), "");
}

}  // namespace
}  // namespace muster::fleet
