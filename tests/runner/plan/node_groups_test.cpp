// SPDX-License-Identifier: Apache-2.0
// Sweeps over the number of nodes: what a list makes of a stage, and what each node of a run does in it.
#include "runner/plan/node_groups.h"

#include <gmock/gmock.h>

#include <random>

#include "tests/runner/plan/plan_support.h"

namespace muster::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A plan with the stage "walk" of all nodes and this list, and one that needs it.
std::string sweepPlan(const std::string& nodes, const std::string& scope = "cluster") {
  return "schema = 1\nname = \"p\"\n[[stage]]\nname = \"walk\"\ntest = \"compute.cluster_gemm\"\nscope = \"" +
         scope + "\"\nnodes = " + nodes +
         "\n[[stage]]\nname = \"after\"\ntest = \"compute.cluster_gemm\"\nscope = \"node\"\nneeds = "
         "[\"walk\"]\n";
}

std::vector<std::string> namesIn(const Plan& plan) {
  std::vector<std::string> names;
  for (const Stage& stage : plan.stages) names.push_back(stage.name);
  return names;
}

TEST(NodeGroups, MakeAStageOfEachNumberAndWhoNeedsOneNeedsAll) {
  const std::string text = sweepPlan("[1, 4, \"all\"]");
  const Plan plan = planOf(parseToml(text));
  ASSERT_THAT(namesIn(plan), ElementsAre("walk-nodes-1", "walk-nodes-4", "walk-nodes-all", "after"));
  EXPECT_EQ(plan.stages[1].nodes, 4);
  EXPECT_EQ(plan.stages[2].nodes, 0);
  EXPECT_EQ(plan.stages[1].cases.front().id, "walk-nodes-4");
  EXPECT_THAT(plan.stages[3].needs, ElementsAre("walk-nodes-1", "walk-nodes-4", "walk-nodes-all"));
  const Plan lua =
      planOf(parseLua("return plan{ schema = 1, name = 'p', stage{ name = 'walk', test = "
                      "'compute.cluster_gemm', scope = 'cluster', "
                      "nodes = { 1, 4, 'all' } } }"));
  EXPECT_THAT(namesIn(lua), ElementsAre("walk-nodes-1", "walk-nodes-4", "walk-nodes-all"));
}

/// A record's plan is read before anything else is known of it.
TEST(NodeGroups, OfATextThatNoPlanCouldHaveAreNone) {
  EXPECT_THAT(sweepNames("walk", Json::array({1, 4})), ElementsAre("walk-nodes-1", "walk-nodes-4"));
  EXPECT_THAT(sweepNames("walk", Json()), ElementsAre("walk"));
  EXPECT_THAT(sweepOf(Json::array({1, 4, "all"})), ElementsAre(1, 4, 0));
  EXPECT_TRUE(sweepNames("walk", Json(std::vector<int>(33, 1))).empty());
  EXPECT_TRUE(sweepNames(std::string(300'000, 'w'), Json()).empty());
}

TEST(NodeGroups, AreRefusedWhereTheListSaysNothing) {
  const std::pair<const char*, const char*> all[] = {{"4", "found 4; expected a list of numbers"},
                                                     {"[]", "found 0 numbers; expected 1 to 32"},
                                                     {"[0]", "found 0; expected numbers of nodes"},
                                                     {"[1, 1]", "in rising order"},
                                                     {"[2, 1]", "in rising order"},
                                                     {"[\"all\", 2]", "in rising order"},
                                                     {"[\"al\"]", "found \"al\"; expected numbers"},
                                                     {"[1.5]", "found 1.5; expected numbers"}};
  for (const auto& [nodes, problem] : all)
    EXPECT_THAT(problemsOf(parseToml(sweepPlan(nodes))), HasSubstr(problem)) << nodes;
  EXPECT_THAT(problemsOf(parseToml(sweepPlan("[1]", "node"))),
              HasSubstr("plan.toml:7:1: stage \"walk\": nodes: found a stage of scope node"));
}

TEST(NodeGroups, GiveNoStageTheNameOfAnother) {
  const std::string twin =
      sweepPlan("[1]") +
      "[[stage]]\nname = \"walk-nodes-1\"\ntest = \"compute.cluster_gemm\"\nscope = \"node\"\n";
  EXPECT_THAT(problemsOf(parseToml(twin)),
              HasSubstr("it makes a stage \"walk-nodes-1\", but the plan has one"));
  std::string wide = sweepPlan("[1]");
  for (size_t at = wide.find("walk"); at != std::string::npos; at = wide.find("walk", at + 64))
    wide.replace(at, 4, std::string(64, 'w'));
  EXPECT_THAT(problemsOf(parseToml(wide)), HasSubstr("whose name is too long"));
}

/// Any list in any run: a node is a member, or is told why not. No node is left out of all groups without a
/// skip of its own that blocks, and no group has other nodes than the first ones.
TEST(NodeGroups, NeverHideANode) {
  std::mt19937 random(20261125);
  for (int trial = 0; trial < 5000; ++trial) {
    Stage written;
    written.name = "walk";
    for (int nodes = 1; nodes <= 12; ++nodes)
      if (random() % 3 == 0) written.sweep.push_back(nodes);
    if (written.sweep.empty() || random() % 2 == 0) written.sweep.push_back(0);
    const std::vector<Stage> stages = withSweeps({written});
    ASSERT_EQ(stages.size(), written.sweep.size());
    const int count = 1 + static_cast<int>(random() % 14);
    std::vector<int> groups(static_cast<size_t>(count)), blocks(static_cast<size_t>(count));
    for (const Stage& stage : stages) {
      const int first = groupNodes(stage, count);
      for (int rank = 0; rank < count; ++rank) {
        const NodePart part = partOf(stage, rank, count);
        ASSERT_EQ(part.why.empty(), part.kind == NodePart::Kind::kMember);
        ASSERT_EQ(part.kind == NodePart::Kind::kNoGroup,
                  partOf(stage, 0, count).kind == NodePart::Kind::kNoGroup);
        if (part.kind == NodePart::Kind::kMember) ++groups[static_cast<size_t>(rank)];
        if (part.blocks) ++blocks[static_cast<size_t>(rank)];
        if (part.kind == NodePart::Kind::kNoGroup) continue;
        ASSERT_EQ(part.kind == NodePart::Kind::kMember, rank < first) << rank << " of " << first;
      }
    }
    const bool hidden = std::count(groups.begin(), groups.end(), 0) > 0;
    for (size_t rank = 0; rank < groups.size(); ++rank)
      ASSERT_TRUE(groups[rank] > 0 ? hidden || blocks[rank] == 0 : blocks[rank] > 0) << trial;
    ASSERT_TRUE(!hidden || written.sweep.back() != 0) << "\"all\" leaves nobody out";
  }
}

}  // namespace
}  // namespace muster::testing
