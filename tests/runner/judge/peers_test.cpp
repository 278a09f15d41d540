// SPDX-License-Identifier: Apache-2.0
// Peers of a node: who is compared with whom.
#include "runner/judge/peers.h"

#include <gmock/gmock.h>

#include "tests/runner/judge/evidence.h"

namespace muster {
namespace {
using namespace testing;
using ::testing::HasSubstr;

Story nodeOf(const std::vector<double>& figures, const Expectation& e) {
  Story story;
  for (size_t rank = 0; rank < figures.size(); ++rank)
    story.ends(static_cast<int>(rank)).measures(static_cast<int>(rank), {figures[rank]});
  return story.expects(e);
}

TEST(Within, TheSlowOneOfManyMissesTheMedian) {
  const Story story = nodeOf({700, 702, 698, 600, 701}, within(0.03));
  EXPECT_EQ(story.outcomes(), "pass pass pass fail pass");
  EXPECT_EQ(
      story.judge().verdicts[3].detail,
      "gpu3: 600 FLOP/s, required at least 679 FLOP/s (within 3% of the node median 700 FLOP/s) (12% below)");
}

TEST(Within, TheFastOneIsNotAFault) {
  EXPECT_EQ(nodeOf({700, 700, 900}, within(0.03)).outcomes(), "pass pass pass");
}

TEST(Within, OfTwoTheBetterIsTheReference) {
  // Their median, 650, would excuse the slow one.
  const Story story = nodeOf({700, 660}, within(0.05));
  EXPECT_EQ(story.outcomes(), "pass fail");
  EXPECT_THAT(story.judge().verdicts[1].limitText, HasSubstr("the better of two, 700 FLOP/s"));
}

TEST(Within, GoesByTheBadDirection) {
  Expectation e = within(0.05);
  e.metric = "env.temperature";
  e.unit = "degC";
  Story story;
  for (int rank = 0; rank < 4; ++rank)
    story.ends(rank).measures(rank, {rank == 1 ? 80.0 : rank == 2 ? 40 : 60}, e.metric);
  EXPECT_EQ(story.expects(e).outcomes(), "pass fail pass pass");
}

TEST(Within, WithoutADirectionBothSidesCount) {
  Story story = nodeOf({100, 100, 80, 120, 100}, within(0.1));
  for (auto& m : story.evidence.measurements) m.direction = Direction::kNone;
  EXPECT_EQ(story.outcomes(), "pass pass fail fail pass");
}

TEST(Within, ASingleDeviceHasNoPeerAndThatBlocksNothing) {
  const Verdict v = nodeOf({700}, within(0.03)).verdict();
  EXPECT_EQ(v.outcome, Outcome::kSkipped);
  EXPECT_FALSE(v.required);
  EXPECT_THAT(v.detail, HasSubstr("the node has only one device"));
}

TEST(Within, BrokenValuesAreNotAReference) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(nodeOf({700, nan, 600, 700}, within(0.03)).outcomes(), "pass error fail pass");
  EXPECT_EQ(nodeOf({700, nan}, within(0.03)).outcomes(), "error error");
}

TEST(Within, OtherLabelsAreOtherPeers) {
  Story story = nodeOf({700, 700, 700, 300, 300, 300}, within(0.03));
  for (auto& m : story.evidence.measurements) m.labels["dtype"] = m.rank < 3 ? "bf16" : "f32";
  EXPECT_EQ(story.outcomes(), "pass pass pass pass pass pass");
}

TEST(Within, DeviceRankAndPeerLabelsDoNotSeparate) {
  Story story = nodeOf({700, 700, 700, 300}, within(0.03));
  for (auto& m : story.evidence.measurements) {
    m.labels["rank"] = std::to_string(m.rank);
    m.labels["peer"] = "gpu" + std::to_string((m.rank + 1) % 4);
  }
  EXPECT_EQ(story.outcomes(), "pass pass pass fail");
}

TEST(Within, TheFleetsMedianIsTakenOnceAllAreThere) {
  Story story = nodeOf({700, 700, 600}, within(0.03, PeerGroup::kFleet));
  EXPECT_EQ(story.outcomes(), "deferred deferred deferred");
  story.context.peersAreDeferred = false;
  EXPECT_EQ(story.outcomes(), "pass pass fail");
}

TEST(Within, ABrokenFigureIsNotDeferred) {
  EXPECT_EQ(nodeOf({-1}, within(0.03, PeerGroup::kFleet)).outcomes(), "error");
  EXPECT_EQ(Story().ends(0).expects(within(0.03, PeerGroup::kFleet)).outcomes(), "error");
}

/// Going through all peers for each rank would take many minutes here.
TEST(Within, ManyRanksAreComparedWithOneMedian) {
  constexpr size_t kRanks = 100'000;
  Story story;
  for (int rank = 0; rank < static_cast<int>(kRanks); ++rank)
    story.ends(rank).measures(rank, {rank == 5 ? 5e14 : 7e14});
  const auto judgement = story.expects(within(0.1)).expects(within(0.2)).judge();
  EXPECT_EQ(judgement.accounting.of(Outcome::kPass), 2 * (kRanks - 1));
  EXPECT_EQ(judgement.accounting.of(Outcome::kFail), 2u);
}

/// Neither alone nor beside the others that a partial run chose: they may share its fault.
TEST(Within, IsNotJudgedWhereAPartialRunLeftOutPeers) {
  for (const auto& values : {std::vector<double>{700}, {700, 500}, {600, 600, 600}})
    for (const auto peers : {PeerGroup::kNode, PeerGroup::kFleet}) {
      Expectation e = within(0.03);
      e.peers = peers;
      Story story = nodeOf(values, e);
      story.evidence.peersMissing = true;
      const StageJudgement judgement = judgeStage(story.evidence, {});
      for (const Verdict& v : judgement.verdicts) {
        EXPECT_EQ(v.outcome, Outcome::kSkipped);
        EXPECT_FALSE(v.required);
        EXPECT_NE(v.detail.find("this partial run left out other devices"), std::string::npos) << v.detail;
      }
      EXPECT_EQ(judgement.verdicts.size(), values.size());
    }
}

}  // namespace
}  // namespace muster
