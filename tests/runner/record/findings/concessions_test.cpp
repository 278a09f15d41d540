// SPDX-License-Identifier: Apache-2.0
// The words of the verdict, and who answers for what was waived.
#include "runner/record/findings/concessions.h"

#include <gtest/gtest.h>

#include "tests/runner/record/sample/sample_record.h"

namespace muster {
namespace {

/// An accepted node with one waived failure of gpu3.
Record concededRecord() {
  Record record = testing::healthyRecord();
  record.stages[1].verdicts[3].outcome = Outcome::kWaived;
  testing::settle(record);
  WaiverRecord waiver;
  waiver.stage = "gemm";
  waiver.metric = "compute.gemm_throughput";
  waiver.where = {{"dtype", "bf16"}};
  waiver.device = "gpu3";
  waiver.approver = "J. Doe";
  waiver.expires = "2026-12-31";
  waiver.state = WaiverState::kApplied;
  waiver.covered = 1;
  record.waivers = {waiver};
  return record;
}

TEST(Concessions, NamePartApproverAndExpiry) {
  const auto found = concessionsOf(concededRecord());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].text(),
            "gpu3 (serial 1652324041121, 0000:4b:00.0), gemm compute.gemm_throughput dtype=bf16: approved by "
            "J. Doe, until 2026-12-31");
}

TEST(Concessions, FindThePartOfASerial) {
  Record record = concededRecord();
  record.waivers[0].device.clear();
  record.waivers[0].serial = "1652324041121";
  EXPECT_EQ(concessionsOf(record)[0].part, "gpu3 (serial 1652324041121, 0000:4b:00.0)");
  record.waivers[0].serial = "elsewhere";
  EXPECT_EQ(concessionsOf(record)[0].part, "serial elsewhere");
}

TEST(Concessions, AreOnlyWaiversThatWereUsed) {
  Record record = concededRecord();
  record.waivers[0].covered = 0;
  EXPECT_TRUE(concessionsOf(record).empty());
}

TEST(VerdictText, SaysThatConcessionsWereMade) {
  Record record = concededRecord();
  EXPECT_EQ(verdictText(record), "ACCEPTED WITH CONCESSIONS");
  record.acceptance = Acceptance::kRejected;
  EXPECT_EQ(verdictText(record), "REJECTED");
  EXPECT_EQ(verdictText(testing::healthyRecord()), "ACCEPTED");
  record.acceptance = Acceptance::kNoGpu;
  EXPECT_EQ(verdictText(record), "NO GPU");
}

}  // namespace
}  // namespace muster
