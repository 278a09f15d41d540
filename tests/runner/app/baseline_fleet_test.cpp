// SPDX-License-Identifier: Apache-2.0
// Which records of a folder are learned from: those that agree with most in plan, devices and profile.
#include "runner/app/baseline/baseline_fleet.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace muster {
namespace {

using fleet::FleetRecords;
using fleet::NodeSummary;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kDigest(64, 'a');
const std::string kOther(64, 'b');

void addFigure(FleetRecords& records, NodeSummary& node, Direction direction = Direction::kHigher) {
  fleet::FigureKey key;
  key.stage = "memory";
  key.metric = "memory.bandwidth";
  key.unit = "B/s";
  key.direction = direction;
  const std::string name = key.text() + std::to_string(static_cast<int>(direction));
  node.figures.push_back({records.names->figures.number(name, [&] { return key; }), 0, 5, 3e12F, 0, 3e12F});
}

void addStage(FleetRecords& records, NodeSummary& node, const std::string& name,
              StageState state = StageState::kRan) {
  fleet::StageSummary& stage = node.stages.emplace_back();
  stage.name = records.names->text(name);
  stage.state = state;
}

void setGpus(NodeSummary& node, int count, const std::string& model = "H100") {
  node.devices.clear();
  for (int i = 0; i < count; ++i)
    node.devices.push_back({"gpu" + std::to_string(i), "gpu", model, "", "", ""});
}

/// Nodes that agree in all.
FleetRecords recordsOf(int nodes) {
  FleetRecords records;
  for (int i = 0; i < nodes; ++i) {
    NodeSummary node;
    node.node = "n" + std::to_string(i);
    node.path = node.node + "/record.json";
    node.planName = "node-quick";
    node.planSha256 = kDigest;
    node.profileName = "h100";
    node.profileSha256 = kDigest;
    node.acceptance = Acceptance::kAccepted;
    setGpus(node, 8);
    addFigure(records, node);
    records.nodes.push_back(std::move(node));
  }
  return records;
}

FleetToLearn toLearn(const FleetRecords& records, bool ownBase = false) {
  auto result = fleetToLearn(records, ownBase);
  EXPECT_TRUE(result.ok()) << result.error().text();
  return result.ok() ? std::move(*result) : FleetToLearn{};
}

std::string refusal(const FleetRecords& records, bool ownBase = false) {
  const auto result = fleetToLearn(records, ownBase);
  EXPECT_FALSE(result.ok());
  return result.ok() ? "" : result.error().message;
}

/// How one node differs from the others, and what is said of it.
struct Difference {
  std::function<void(NodeSummary&)> make;
  std::string why;
};

const std::vector<Difference> kDifferences = {
    {[](NodeSummary& n) { n.planSha256 = kOther; },
     "plan node-quick bbbbbbbbbbbb; 4 of 5 nodes have node-quick aaaaaaaaaaaa"},
    {[](NodeSummary& n) { n.overrides = {"stage.memory.params.size=1"}; },
     "plan node-quick aaaaaaaaaaaa --set stage.memory.params.size=1; 4 of 5 nodes have node-quick "
     "aaaaaaaaaaaa"},
    {[](NodeSummary& n) { setGpus(n, 64); }, "devices 64 x H100; 4 of 5 nodes have 8 x H100"},
    {[](NodeSummary& n) { n.devices[3].name = "A100"; },
     "devices 1 x A100, 7 x H100; 4 of 5 nodes have 8 x H100"},
    {[](NodeSummary& n) { n.profileSha256 = kOther; },
     "profile h100 bbbbbbbbbbbb; 4 of 5 nodes have h100 aaaaaaaaaaaa"},
    // Digests are compared in full, though the first 12 digits are shown.
    {[](NodeSummary& n) { n.profileSha256.back() = 'b'; },
     "profile h100 aaaaaaaaaaaa; 4 of 5 nodes have h100 aaaaaaaaaaaa"},
    {[](NodeSummary& n) { n.profileName.clear(); }, "profile none; 4 of 5 nodes have h100 aaaaaaaaaaaa"},
};

TEST(BaselineFleet, LeavesOutANodeThatDiffersFromMostAndSaysInWhat) {
  for (const Difference& difference : kDifferences) {
    FleetRecords records = recordsOf(5);
    difference.make(records.nodes[0]);
    const FleetToLearn fleet = toLearn(records);
    ASSERT_EQ(fleet.input.nodes.size(), 5u);
    EXPECT_EQ(fleet.input.nodes[0].sick, difference.why);
    EXPECT_TRUE(fleet.input.nodes[0].misfit);
    for (size_t i = 1; i < 5; ++i) EXPECT_EQ(fleet.input.nodes[i].sick, "") << difference.why;
    EXPECT_EQ(fleet.example, 1u) << difference.why;
    ASSERT_EQ(fleet.input.groups.size(), 1u);
    EXPECT_EQ(fleet.input.groups[0].figures.size(), 4u) << difference.why;
  }
}

TEST(BaselineFleet, TakesNoExampleFromAMisfitEvenWhereAllOthersFailed) {
  FleetRecords records = recordsOf(5);
  records.nodes[0].profileSha256 = kOther;
  for (size_t i = 1; i < 5; ++i) {
    records.nodes[i].deviations.emplace_back();
    records.nodes[i].deviations.back().outcome = Outcome::kFail;
    records.nodes[i].deviations.back().metric = records.names->text("memory.bandwidth");
  }
  const FleetToLearn fleet = toLearn(records);
  EXPECT_EQ(fleet.input.nodes[1].sick, "memory.bandwidth fail");
  EXPECT_EQ(fleet.example, 1u);
}

TEST(BaselineFleet, RefusesWhereNoneHasAMajorityAndNamesTheGroups) {
  for (const Difference& difference : kDifferences) {
    FleetRecords records = recordsOf(4);
    for (int i : {0, 1}) difference.make(records.nodes[static_cast<size_t>(i)]);
    EXPECT_THAT(refusal(records), HasSubstr(": no value has a majority: ")) << difference.why;
  }
  FleetRecords records = recordsOf(4);
  for (int i : {0, 1}) records.nodes[static_cast<size_t>(i)].profileSha256 = kOther;
  EXPECT_THAT(refusal(records), AllOf(HasSubstr("h100 bbbbbbbbbbbb (2 nodes)"),
                                      HasSubstr("h100 aaaaaaaaaaaa (2 nodes)"), HasSubstr("--base FILE")));
}

TEST(BaselineFleet, LetsProfilesDifferWhereTheUserGivesTheBaseAndSaysSo) {
  FleetRecords records = recordsOf(4);
  for (int i : {0, 1}) records.nodes[static_cast<size_t>(i)].profileSha256 = kOther;
  const FleetToLearn fleet = toLearn(records, true);
  for (const LearnNode& node : fleet.input.nodes) EXPECT_EQ(node.sick, "");
  ASSERT_EQ(fleet.remarks.size(), 1u);
  EXPECT_THAT(fleet.remarks[0], HasSubstr("profiles differ: h100 bbbbbbbbbbbb (2 nodes)"));
  for (int i : {0, 1}) setGpus(records.nodes[static_cast<size_t>(i)], 4);
  EXPECT_THAT(refusal(records, true),
              HasSubstr("devices: no value has a majority: 8 x H100 (2 nodes), 4 x H100 (2 nodes)"));
}

TEST(BaselineFleet, GivesANodeOneVoteWhateverTheNumberOfItsRecords) {
  FleetRecords records = recordsOf(5);
  for (int i = 0; i < 10; ++i) {
    NodeSummary more = records.nodes.front();
    more.path = fmt::format("n0/{}/record.json", i);
    more.planSha256 = kOther;
    records.nodes.push_back(more);
  }
  records.nodes.front().planSha256 = kOther;
  const FleetToLearn fleet = toLearn(records);
  for (const LearnNode& node : fleet.input.nodes)
    EXPECT_EQ(node.sick, node.name == "n0"
                             ? "plan node-quick bbbbbbbbbbbb; 4 of 5 nodes have node-quick aaaaaaaaaaaa"
                             : "");
  // Where all have two plans, neither is that of most.
  for (const char* name : {"n1", "n2", "n3", "n4"}) {
    records.nodes.push_back(records.nodes.back());
    records.nodes.back().node = name;
  }
  EXPECT_THAT(refusal(records), HasSubstr("plan: no value has a majority: "));
}

TEST(BaselineFleet, CountsTheRecordsOfANodeThatAgreeWithMost) {
  FleetRecords records = recordsOf(5);
  records.nodes[0].node = "n1";
  for (NodeSummary& node : records.nodes) addStage(records, node, "memory");
  EXPECT_THAT(refusal(records),
              HasSubstr("2 records are of node n1 and hold stage memory; keep only the latest"));
  records.nodes[0].planSha256 = kOther;
  EXPECT_EQ(toLearn(records).input.nodes[1].sick, "");
}

/// Jobs of the scopes of a plan leave a record each.
TEST(BaselineFleet, TakesRecordsOfANodeThatShareNoStageAsOneNode) {
  FleetRecords records = recordsOf(6);
  for (size_t i = 0; i < 6; ++i) {
    NodeSummary& node = records.nodes[i];
    node.node = "n" + std::to_string(i % 3);
    addStage(records, node, "muster:inventory");
    addStage(records, node, "memory", i < 3 ? StageState::kRan : StageState::kElsewhere);
    addStage(records, node, "all", i < 3 ? StageState::kElsewhere : StageState::kRan);
  }
  records.nodes[4].deviations.emplace_back();
  records.nodes[4].deviations.back().outcome = Outcome::kFail;
  records.nodes[4].deviations.back().metric = records.names->text("collective.bus_bandwidth");
  const FleetToLearn fleet = toLearn(records);
  EXPECT_THAT(fleet.records, ElementsAre(ElementsAre(0, 3), ElementsAre(1, 4), ElementsAre(2, 5)));
  ASSERT_EQ(fleet.input.nodes.size(), 3u);
  EXPECT_EQ(fleet.input.nodes[1].sick, "collective.bus_bandwidth fail");
  ASSERT_EQ(fleet.input.groups.size(), 1u);
  std::vector<int> nodes;
  for (const LearnFigure& figure : fleet.input.groups[0].figures) nodes.push_back(figure.node);
  EXPECT_THAT(nodes, ElementsAre(0, 1, 2, 0, 1, 2));
}

TEST(BaselineFleet, TakesALinkAsAKindAndAPeerAsAPlace) {
  FleetRecords records = recordsOf(1);
  for (const auto& [peer, link] :
       {std::pair{"gpu1", "nvlink"}, {"gpu2", "pcie_host"}, {"gpu3", "pcie_host"}}) {
    fleet::FigureKey key;
    key.metric = "memory.peer_bandwidth";
    key.unit = "B/s";
    key.direction = Direction::kHigher;
    key.labels = {{"link", link}, {"peer", peer}};
    records.nodes[0].figures.push_back(
        {records.names->figures.number(key.text(), [&] { return key; }), 0, 5, 1e11F, 0, 1e11F});
  }
  const FleetToLearn fleet = toLearn(records);
  ASSERT_EQ(fleet.input.groups.size(), 3u) << "memory.bandwidth, and two links";
  EXPECT_EQ(fleet.input.groups[1].where, (Labels{{"link", "nvlink"}}));
  EXPECT_EQ(fleet.input.groups[2].where, (Labels{{"link", "pcie_host"}}));
  EXPECT_THAT(fleet.input.places, ElementsAre("peer=gpu1", "peer=gpu2", "peer=gpu3"));
  EXPECT_EQ(fleet.input.groups[0].figures.at(0).place, -1);
  EXPECT_EQ(fleet.input.groups[2].figures.at(1).place, 2);
}

TEST(BaselineFleet, LearnsFromNodesOfOneModelOnly) {
  FleetRecords records = recordsOf(3);
  for (NodeSummary& node : records.nodes) node.devices[0].name = "A100";
  EXPECT_EQ(toLearn(records).input.nodes[2].sick, "devices of several models: 1 x A100, 7 x H100");
}

TEST(BaselineFleet, LetsNoRecordSayForTheOthersWhatAMetricIs) {
  FleetRecords records = recordsOf(3);
  records.nodes[0].figures.clear();
  addFigure(records, records.nodes[0], Direction::kLower);
  const FleetToLearn fleet = toLearn(records);
  ASSERT_EQ(fleet.input.groups.size(), 2u);
  for (const LearnGroup& group : fleet.input.groups)
    EXPECT_EQ(group.figures.size(), group.direction == Direction::kLower ? 1u : 2u);
}

}  // namespace
}  // namespace muster
