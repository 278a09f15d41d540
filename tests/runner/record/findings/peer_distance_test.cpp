// SPDX-License-Identifier: Apache-2.0
// Devices are compared with their peers, and only where that means something.
#include "runner/record/findings/peer_distance.h"

#include <gtest/gtest.h>

#include "tests/runner/record/sample/sample_record.h"

namespace muster {
namespace {

using testing::healthyRecord;

TEST(PeerDistance, ComparesWithTheOthersOfTheSameCase) {
  Record record = healthyRecord();
  StageRecord& stage = record.stages[1];
  for (size_t i = 0; i < 8; ++i) stage.verdicts[i].observed = 700e12;
  stage.verdicts[3].observed = 595e12;
  EXPECT_EQ(peerDistance(stage, stage.verdicts[3]).text(), "15% below its 7 peers (median 700 TFLOP/s)");
  EXPECT_EQ(peerDistance(stage, stage.verdicts[0]).text(), "equal to its 7 peers (median 700 TFLOP/s)");
}

TEST(PeerDistance, NeedsTwoPeers) {
  Record record = healthyRecord();
  StageRecord& stage = record.stages[1];
  stage.verdicts.resize(3);
  EXPECT_NE(peerDistance(stage, stage.verdicts[0]).text(), "");
  stage.verdicts.resize(2);
  EXPECT_EQ(peerDistance(stage, stage.verdicts[0]).text(), "");
}

TEST(PeerDistance, LeavesOutCountsAndStability) {
  Record record = healthyRecord();
  StageRecord& stage = record.stages[1];
  Verdict& verdict = stage.verdicts[3];
  verdict.expectation->unit = "count";
  EXPECT_EQ(peerDistance(stage, verdict).text(), "");
  verdict.expectation->unit = "FLOP/s";
  verdict.expectation->kind = CheckKind::kCvMax;
  EXPECT_EQ(peerDistance(stage, verdict).text(), "");
}

TEST(PeerDistance, IsThatOfASingleVerdictForAllVerdictsOfAStage) {
  Record record = testing::sickRecord();
  PeerDistances distances;
  for (const StageRecord& stage : record.stages)
    for (const Verdict& verdict : stage.verdicts)
      EXPECT_EQ(distances.of(stage, verdict).text(), peerDistance(stage, verdict).text());
}

TEST(PeerDistance, OfThousandsOfDevicesIsFoundInTime) {
  StageRecord stage = healthyRecord().stages[1];
  stage.verdicts.resize(1);
  for (int i = 1; i <= 20'000; ++i) {
    stage.verdicts.push_back(stage.verdicts[0]);
    stage.verdicts.back().device = "g" + std::to_string(i);
    stage.verdicts.back().observed = i;
  }
  PeerDistances distances;
  for (const Verdict& verdict : stage.verdicts) EXPECT_EQ(distances.of(stage, verdict).peers, 20'000u);
  stage.verdicts.erase(stage.verdicts.begin());
  PeerDistances others;
  EXPECT_EQ(others.of(stage, stage.verdicts.front()).median, 10'001);
  EXPECT_EQ(others.of(stage, stage.verdicts.back()).median, 10'000);
}

}  // namespace
}  // namespace muster
