// SPDX-License-Identifier: Apache-2.0
// Generated fleets with a known number of faults: one incident for each, the most urgent first, with part,
// place, cause and action.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/reports/fleet/faulty_fleet.h"

namespace muster {
namespace {

using fleet::Fleet;
using fleet::Incident;
using fleet::NodeState;
using fleet::Urgency;
using testing::faultKinds;
using testing::Faults;
using testing::FaultyFleet;
using ::testing::HasSubstr;
using testing::nodeOf;

TEST(Incidents, AreAsManyAsTheFaultsAndTheMostUrgentFirst) {
  for (const unsigned seed : {1u, 2u}) {
    SCOPED_TRACE(seed);
    FaultyFleet made(seed);
    const Faults faults = made.someOfEachKind();
    const std::set<int> absent = {made.pick(), made.pick()};
    const Fleet fleet = made.assess(faults, absent);
    std::string listed;
    for (const Incident& one : fleet.incidents)
      listed +=
          fmt::format("{} {} {}: {}\n", one.urgencyName(), fmt::join(one.nodes, ","), one.part, one.cause);
    EXPECT_EQ(fleet.incidents.size(), faults.size() + absent.size()) << listed;
    EXPECT_TRUE(std::is_sorted(fleet.incidents.begin(), fleet.incidents.end(),
                               [](const Incident& a, const Incident& b) { return a.order < b.order; }));
    for (const auto& [node, fault] : faults) {
      const std::string name = FaultyFleet::nameOf(node);
      SCOPED_TRACE(fmt::format("{} on {} {}", fault.first->name, name, fault.second));
      const auto at = std::find_if(fleet.incidents.begin(), fleet.incidents.end(), [&](const Incident& one) {
        return one.nodes == std::vector<std::string>{name};
      });
      ASSERT_NE(at, fleet.incidents.end()) << listed;
      EXPECT_EQ(at->urgency, fault.first->urgency) << at->cause;
      EXPECT_EQ(at->place, FaultyFleet::placeOf(node));
      EXPECT_FALSE(at->cause.empty());
      EXPECT_FALSE(at->action.empty());
      EXPECT_THAT(at->command, HasSubstr("# on " + name));
      if (fault.first->device) {
        EXPECT_EQ(at->part, fault.second);
        EXPECT_FALSE(at->serial.empty());
      }
      EXPECT_NE(nodeOf(fleet, name).state, NodeState::kAccepted);
    }
  }
}

TEST(Incidents, OfManyNodesThatAreOpenForOneReasonAreOne) {
  FaultyFleet made(3);
  std::set<int> absent;
  while (absent.size() < 40) absent.insert(made.pick());
  const Fleet fleet = made.assess({}, absent);
  ASSERT_EQ(fleet.incidents.size(), 1u);
  EXPECT_EQ(fleet.incidents[0].nodeCount, 40u);
  EXPECT_EQ(fleet.incidents[0].urgency, Urgency::kA);
}

TEST(Incidents, LeaveNoFlaggedPartAndNoOpenNodeOut) {
  FaultyFleet made(4);
  Faults faults;
  for (int i = 0; i < 12; ++i)
    faults[made.pick()] = {
        &faultKinds()[static_cast<size_t>(made.below(static_cast<int>(faultKinds().size())))], "gpu2"};
  const Fleet fleet = made.assess(faults, {});
  for (const auto& node : fleet.nodes) {
    if (node.state == NodeState::kAccepted) continue;
    EXPECT_TRUE(std::any_of(fleet.incidents.begin(), fleet.incidents.end(), [&](const Incident& one) {
      return one.blocks() && std::find(one.nodes.begin(), one.nodes.end(), node.name) != one.nodes.end();
    })) << node.name;
  }
}

}  // namespace
}  // namespace muster
