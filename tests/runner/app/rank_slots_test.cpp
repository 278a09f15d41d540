// SPDX-License-Identifier: Apache-2.0
// Ranks of a stage: one per device, several on one device, none bound.
#include "runner/app/stage/rank_slots.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

RankSlot device(const std::string& id, const Json& cpus) {
  return {0, id, {{"id", id}, {"cpus", cpus}}};
}

TEST(SlotsFor, GivesEachDeviceARankWithAllItsProcessors) {
  const auto slots = slotsFor({device("cpu0", {0, 1}), device("cpu1", {2, 3})}, {});
  ASSERT_EQ(slots.size(), 2U);
  EXPECT_EQ(slots[1].rank, 1);
  EXPECT_EQ(slots[1].device, "cpu1");
  EXPECT_EQ(slots[1].deviceJson["cpus"], Json({2, 3}));
}

TEST(SlotsFor, DividesTheProcessorsOfASharedDeviceAndKeepsHardwareThreadsTogether) {
  Stage stage;
  stage.ranks = 2;
  const auto slots = slotsFor({device("cpu0", {0, 1, 2, 3, 8, 9, 10, 11})}, stage);
  ASSERT_EQ(slots.size(), 2U);
  EXPECT_EQ(slots[0].deviceJson["cpus"], Json({0, 2, 8, 10}));
  EXPECT_EQ(slots[1].deviceJson["cpus"], Json({1, 3, 9, 11}));
}

TEST(SlotsFor, LeavesAllProcessorsToRanksThatAreMore) {
  Stage stage;
  stage.ranks = 3;
  const auto slots = slotsFor({device("cpu0", {0, 1})}, stage);
  ASSERT_EQ(slots.size(), 3U);
  for (const RankSlot& slot : slots) EXPECT_EQ(slot.deviceJson["cpus"], Json({0, 1}));
}

TEST(SlotsFor, BindsTheOneRankOfANodeToNothing) {
  Stage stage;
  stage.scope = Scope::kNode;
  stage.ranks = 1;
  const auto slots = slotsFor({device("cpu0", {0, 1})}, stage);
  ASSERT_EQ(slots.size(), 1U);
  EXPECT_EQ(slots[0].device, "");
}

TEST(SlotsFor, HasNoRankWithoutADevice) {
  EXPECT_TRUE(slotsFor({}, {}).empty());
}

TEST(KeepOnly, LeavesAllRanksOfTheChosenDevicesAndNumbersThemAnew) {
  Stage stage;
  stage.ranks = 6;
  auto slots = slotsFor({device("gpu0", {}), device("gpu1", {}), device("gpu2", {})}, stage);
  const auto all = slots;
  keepOnly({}, slots);
  EXPECT_EQ(slots.size(), all.size());
  keepOnly({"gpu2", "gpu9"}, slots);
  ASSERT_EQ(slots.size(), 2U);
  for (size_t i = 0; i < slots.size(); ++i) {
    EXPECT_EQ(slots[i].device, "gpu2");
    EXPECT_EQ(slots[i].rank, static_cast<int>(i));
  }
}

}  // namespace
}  // namespace muster
