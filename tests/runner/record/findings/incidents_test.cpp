// SPDX-License-Identifier: Apache-2.0
// Incidents: one cause is told once, and nothing is lost on the way.
#include "runner/record/findings/incidents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runner/record/sample/sample_record.h"

namespace muster {
namespace {

using testing::healthyRecord;
using testing::settle;
using testing::sickRecord;

/// Makes a verdict of `stage` fail under another metric and device.
void fail(StageRecord& stage, size_t index, const std::string& metric, const std::string& device) {
  Verdict& verdict = stage.verdicts[index];
  verdict.outcome = Outcome::kFail;
  verdict.metric = metric;
  verdict.device = device;
  verdict.rank = -1;
}

/// An error of rank `index` that says `detail`.
void giveUp(StageRecord& stage, size_t index, RankOutcome state, const std::string& detail) {
  Verdict& verdict = stage.verdicts[index];
  verdict.outcome = Outcome::kError;
  verdict.metric.clear();
  verdict.expectation.reset();
  verdict.detail = detail;
  stage.ranks[index].state = state;
}

/// Skips a stage because of `need`.
void skipFor(StageRecord& stage, const std::string& need) {
  stage.state = StageState::kSkipped;
  stage.needs = {need};
  stage.reason = "prerequisite stage " + need + " did not pass (fail)";
  stage.measurements.clear();
  stage.verdicts.resize(1);
  stage.verdicts[0] = Verdict();
  stage.verdicts[0].outcome = Outcome::kSkipped;
  stage.verdicts[0].stage = stage.name;
  stage.verdicts[0].detail = stage.reason;
}

TEST(Incidents, JoinMemoryFaultsOfOneDevice) {
  Record record = healthyRecord();
  fail(record.stages[1], 0, "env.ecc_uncorrected", "gpu2");
  fail(record.stages[1], 1, "env.row_remap_pending", "gpu2");
  fail(record.stages[2], 0, "env.row_remap_pending", "gpu2");
  fail(record.stages[1], 2, "env.xid_fatal", "gpu2");
  fail(record.stages[1], 3, "env.ecc_uncorrected", "gpu4");
  settle(record);
  const auto found = incidents(record);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].findings.size(), 3u);
  EXPECT_EQ(found[0].main().first().metric, "env.ecc_uncorrected");
  EXPECT_EQ(found[1].main().who(), "gpu4");
}

TEST(Incidents, TellAHangOnceThoughEveryRankWasGivenUp) {
  Record record = healthyRecord();
  StageRecord& stage = record.stages[1];
  for (const size_t rank : {0, 1, 2, 4}) giveUp(stage, rank, RankOutcome::kAbandoned, "waited for rank 3");
  giveUp(stage, 3, RankOutcome::kTimeout, "rank 3 made no progress");
  settle(record);
  const auto found = incidents(record);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].main().first().device, "gpu3");
  EXPECT_EQ(found[0].findings.size(), 5u);
}

TEST(Incidents, KeepRanksThatWereGivenUpWithoutAFaultyOne) {
  Record record = healthyRecord();
  giveUp(record.stages[1], 0, RankOutcome::kAbandoned, "the node was lost");
  settle(record);
  EXPECT_EQ(incidents(record).size(), 1u);
}

TEST(Incidents, ListStagesThatWereNotRunBecauseOfThem) {
  Record record = healthyRecord();
  fail(record.stages[1], 0, "compute.gemm_throughput", "gpu0");
  skipFor(record.stages[2], "gemm");
  skipFor(record.stages[3], "memory-bandwidth");
  settle(record);
  const auto found = incidents(record);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].notRunText(), "Not run because of it: memory-bandwidth, host-copy");
  EXPECT_TRUE(notJudged(record).empty());
}

TEST(Incidents, DoNotExplainASkipByAStageThatPassed) {
  Record record = healthyRecord();
  skipFor(record.stages[2], "gemm");
  settle(record);
  const auto found = incidents(record);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].main().outcome, Outcome::kSkipped);
  EXPECT_TRUE(found[0].blocks());
}

TEST(Incidents, LoseNothingOfASickNode) {
  Record record = sickRecord();
  skipFor(record.stages[3], "gemm");
  settle(record);
  size_t told = 0;
  for (const Incident& incident : incidents(record)) {
    told += incident.notRun.size();
    for (const Deviation& deviation : incident.findings) told += deviation.items.size();
  }
  for (const auto& list : {notJudged(record), waived(record)})
    for (const Deviation& deviation : list) told += deviation.items.size();
  EXPECT_EQ(told, record.accounting.total() - record.accounting.of(Outcome::kPass));
}

TEST(Incidents, StartWithAnUnknownSkuThatNobodyAllowed) {
  Record record = healthyRecord();
  record.profile = {};
  record.skuHow = "unknown: no profile matches gpu0";
  record.acceptance = Acceptance::kIncomplete;
  const auto found = incidents(record);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].blocks());
  EXPECT_EQ(found[0].main().first().detail, "unknown SKU, so no limits apply: no profile matches gpu0");
  EXPECT_THAT(found[0].action(), ::testing::HasSubstr("Add a profile"));
  record.allowUnknownSku = true;
  EXPECT_TRUE(incidents(record).empty());
}

TEST(Incidents, OfThousandsOfDevicesAreFoundInTime) {
  Record record = healthyRecord();
  StageRecord& stage = record.stages[1];
  fail(stage, 0, "env.ecc_uncorrected", "");
  stage.verdicts.resize(1, stage.verdicts[0]);
  for (int i = 0; i < 20'000; ++i) {
    for (const char* metric : {"env.ecc_uncorrected", "env.xid_fatal"}) {
      stage.verdicts.push_back(stage.verdicts[0]);
      stage.verdicts.back().metric = metric;
      stage.verdicts.back().device = "g" + std::to_string(i);
    }
  }
  const auto found = incidents(record);
  ASSERT_EQ(found.size(), 20'001u);  // and the one without a device
  EXPECT_EQ(found.back().findings.size(), 2u);
}

}  // namespace
}  // namespace muster
