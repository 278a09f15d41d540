// SPDX-License-Identifier: Apache-2.0
// A fleet that is decided again: states, counts and reasons agree.
#include "reports/fleet/decision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::fleet {
namespace {

using ::testing::ElementsAre;

Fleet fleetOf(const std::vector<NodeState>& states) {
  Fleet fleet;
  for (const NodeState state : states) {
    FleetNode& node = fleet.nodes.emplace_back();
    node.name = "n" + std::to_string(fleet.nodes.size());
    node.state = state;
  }
  EXPECT_TRUE(decide(fleet).ok());
  return fleet;
}

TEST(Decision, TakesNodesWithOpenClausesOutOfTheAcceptedOnes) {
  Fleet fleet = fleetOf({NodeState::kAccepted, NodeState::kAccepted});
  EXPECT_EQ(fleet.acceptance, Acceptance::kAccepted);
  ASSERT_TRUE(withhold({{"n2", "clause 4 has no evidence"}}, {"clause 4 ..."}, fleet).ok());
  EXPECT_EQ(fleet.acceptance, Acceptance::kIncomplete);
  EXPECT_EQ(fleet.exitCode, 3);
  EXPECT_EQ(fleet.nodes[1].state, NodeState::kIncomplete);
  EXPECT_EQ(fleet.nodes[1].reason, "clause 4 has no evidence");
  EXPECT_EQ(fleet.states[static_cast<size_t>(NodeState::kAccepted)], 1U);
  EXPECT_EQ(fleet.states[static_cast<size_t>(NodeState::kIncomplete)], 1U);
  EXPECT_THAT(fleet.reasons, ElementsAre("clause 4 ...", "1 of 2 nodes is incomplete"));
}

TEST(Decision, LeavesNodesThatAreNotAcceptedAnyway) {
  Fleet fleet = fleetOf({NodeState::kRejected, NodeState::kMissing, NodeState::kAccepted});
  fleet.nodes[0].reason = "slow";
  ASSERT_TRUE(withhold({{"n1", "clause 4"}, {"n2", "clause 4"}, {"n9", "clause 4"}}, {}, fleet).ok());
  EXPECT_EQ(fleet.acceptance, Acceptance::kRejected);
  EXPECT_EQ(fleet.nodes[0].reason, "slow");
  EXPECT_THAT(fleet.reasons, ElementsAre("1 of 3 nodes is rejected", "1 of 3 nodes is missing: no record"));
}

}  // namespace
}  // namespace muster::fleet
