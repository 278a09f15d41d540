// SPDX-License-Identifier: Apache-2.0
#include "reports/fleet/peers/drift.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// Holders 0, 1, 2 ... with these values.
Drift driftAmong(const std::vector<uint32_t>& values) {
  std::vector<FactValue> facts;
  for (size_t i = 0; i < values.size(); ++i) facts.push_back({i, values[i]});
  return driftOf(facts);
}

std::string textOf(const Drift& drift) {
  return driftText(
      "driver", drift, [](uint32_t value) { return "v" + std::to_string(value); },
      [](size_t holder) { return "node" + std::to_string(holder); });
}

TEST(Drift, IsNoneWhereAllHaveTheSame) {
  EXPECT_EQ(driftAmong({5, 5, 5}).kind, DriftKind::kUniform);
  EXPECT_EQ(driftAmong({5}).kind, DriftKind::kUniform);
  EXPECT_THAT(driftAmong({}).shares, IsEmpty());
  EXPECT_THAT(textOf(driftAmong({5, 5, 5})), IsEmpty());
}

TEST(Drift, NamesThoseOutsideTheMajority) {
  const Drift drift = driftAmong({5, 5, 9, 5, 7, 5, 9});
  EXPECT_EQ(drift.kind, DriftKind::kDrift);
  EXPECT_THAT(drift.drifted(), ElementsAre(2, 4, 6));
  ASSERT_THAT(drift.shares, SizeIs(3));
  EXPECT_EQ(drift.shares[1].value, 9u);
  EXPECT_EQ(textOf(drift),
            "driver: node2, node6 have \"v9\"; node4 has \"v7\", but 4 of 7 have \"v5\". Align them, or "
            "waive it with a reason.");
}

TEST(Drift, LackingAFactIsDriftToo) {
  const Drift drift = driftAmong({5, 5, kNoFact});
  EXPECT_EQ(drift.kind, DriftKind::kDrift);
  EXPECT_THAT(drift.drifted(), ElementsAre(2));
  EXPECT_THAT(textOf(drift), ::testing::HasSubstr("node2 has nothing, but 2 of 3 have \"v5\""));
}

TEST(Drift, HavingAFactThatMostLackIsDriftToo) {
  EXPECT_THAT(driftAmong({kNoFact, kNoFact, 3}).drifted(), ElementsAre(2));
}

TEST(Drift, HalfIsNotAMajority) {
  const Drift drift = driftAmong({5, 9, 5, 9});
  EXPECT_EQ(drift.kind, DriftKind::kSplit);
  EXPECT_THAT(drift.drifted(), IsEmpty());
  EXPECT_EQ(textOf(drift),
            "driver: node0, node2 have \"v5\"; node1, node3 have \"v9\"; no value has a majority of the 4, "
            "so the intended one is unknown. Set it in the profile, or align all nodes.");
}

TEST(Drift, ThreeValuesWithoutMajoritySplit) {
  EXPECT_EQ(driftAmong({1, 1, 2, 2, 3}).kind, DriftKind::kSplit);
}

TEST(Drift, TwoThatDifferAreTooFew) {
  const Drift drift = driftAmong({5, 9});
  EXPECT_EQ(drift.kind, DriftKind::kTooFew);
  EXPECT_THAT(drift.drifted(), IsEmpty());
  EXPECT_THAT(textOf(drift), ::testing::HasSubstr("no value has a majority of the 2"));
}

TEST(Drift, SerialsArePersonal) {
  EXPECT_EQ(driftAmong({1, 2, 3}).kind, DriftKind::kPersonal);
  EXPECT_THAT(textOf(driftAmong({1, 2, 3})), IsEmpty());
  EXPECT_EQ(driftAmong({1, 2, kNoFact}).kind, DriftKind::kSplit);
  EXPECT_EQ(driftAmong({1, 2, 3, 3}).kind, DriftKind::kSplit);  // a serial that two share is told
}

TEST(Drift, OrderOfHoldersDoesNotMatter) {
  const Drift a = driftOf({{4, 7}, {0, 5}, {2, 5}, {1, 5}});
  const Drift b = driftOf({{1, 5}, {2, 5}, {4, 7}, {0, 5}});
  EXPECT_EQ(textOf(a), textOf(b));
  EXPECT_THAT(a.shares[0].holders, ElementsAre(0, 1, 2));
}

TEST(Drift, CountsThoseWithoutAValueLikeThoseThatAreListed) {
  constexpr uint32_t kNo = kNoFact;
  const std::vector<std::vector<uint32_t>> fleets = {
      {5, kNo},         {kNo, 5, kNo},     {5, 5, kNo},
      {1, 2, kNo},      {5, 9, 5, 9},      {kNo, kNo},
      {kNo, 1, 1, kNo}, {kNo, 1, 2, 3, 3}, {kNo, 7, kNo, kNo, 8, kNo, kNo},
      {1, 2, 3}};
  for (const auto& fleet : fleets) {
    std::vector<FactValue> having;
    for (size_t i = 0; i < fleet.size(); ++i)
      if (fleet[i] != kNo) having.push_back({i, fleet[i]});
    const Drift listed = driftAmong(fleet), counted = driftOf(having, fleet.size());
    EXPECT_EQ(counted.kind, listed.kind);
    EXPECT_EQ(textOf(counted), textOf(listed));
    EXPECT_EQ(counted.drifted(), listed.drifted());
  }
}

TEST(Drift, LongListsAreCounted) {
  std::vector<uint32_t> values(30, 1);
  for (uint32_t i = 0; i < 8; ++i) values[i] = 2;
  EXPECT_THAT(textOf(driftAmong(values)),
              ::testing::HasSubstr("node0, node1, node2, node3, node4 and 3 more have \"v2\", but 22 of 30"));
}

}  // namespace
}  // namespace muster::fleet
