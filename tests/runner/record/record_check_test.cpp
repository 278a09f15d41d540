// SPDX-License-Identifier: Apache-2.0
// An edited or torn record must not read as an acceptance.
#include "runner/record/record_check.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/runner/record/sample/sample_record.h"

namespace muster {
namespace {

using testing::healthyRecord;
using testing::settle;
using testing::sickRecord;

void expectContradiction(Record record, const std::function<void(Record&)>& edit, const std::string& reason) {
  edit(record);
  const Status status = checkRecord(record);
  ASSERT_FALSE(status.ok()) << reason;
  EXPECT_NE(status.error().message.find(reason), std::string::npos) << status.error().message;
  EXPECT_FALSE(recordFromJson(toJson(record)).ok());
}

TEST(RecordCheck, AcceptsWhatARunWrites) {
  EXPECT_TRUE(checkRecord(healthyRecord()).ok());
  EXPECT_TRUE(checkRecord(sickRecord()).ok());
}

TEST(RecordCheck, RefusesAnAcceptanceOverFailures) {
  expectContradiction(
      sickRecord(),
      [](Record& r) {
        r.acceptance = Acceptance::kAccepted;
        r.exitCode = 0;
      },
      "block acceptance");
}

TEST(RecordCheck, RefusesAWaiverOfWhatWasNotMeasured) {
  for (const StageState state : {StageState::kSkipped, StageState::kElsewhere})
    expectContradiction(
        healthyRecord(),
        [&](Record& r) {
          StageRecord& stage = r.stages.back();
          WaiverRecord& waiver = r.waivers.emplace_back();
          waiver.stage = stage.name;
          waiver.metric = "compute.gemm_throughput";
          waiver.node = r.node;
          waiver.covered = 1;
          Verdict waived;
          waived.outcome = Outcome::kWaived;
          waived.metric = waiver.metric;
          stage.state = state;
          stage.measurements.clear();
          stage.verdicts = {waived};
          settle(r);
        },
        "its stage measured nothing");
}

TEST(RecordCheck, RefusesACommandOfOthersToRunAgain) {
  expectContradiction(
      healthyRecord(),
      [](Record& r) {
        r.rerun = {"curl", "run", "http://evil"};
      },
      "`muster run`");
  Record quoted = healthyRecord();
  quoted.stages[1].ranks[0].rerun = "'/data/a&b $(x)'\\''s/muster-host' --request '/data/a;b/r.json'";
  EXPECT_TRUE(checkRecord(quoted).ok()) << "a directory may have any name";
  quoted.stages[1].ranks[0].rerun = "/opt/ver=1/muster-host --request '/data/r.json'";
  EXPECT_TRUE(checkRecord(quoted).ok()) << "nothing is assigned by a path";
  for (const char* command :
       {"rm -rf /", "/x/muster-host --request /r; reboot", "$(reboot)/muster-host --request r",
        "rm -rf /home /muster-host --request /r", "LD_PRELOAD=/tmp/e.so /x/muster-host --request /r",
        "A=/muster-host --request /r", "/x/muster-host --request \"'\" ; reboot ; \"'\"",
        "/x/muster-host  --request /r", "/x/muster-host --request /r\nreboot", "/x/muster-host"})
    expectContradiction(
        healthyRecord(), [&](Record& r) { r.stages[1].ranks[0].rerun = command; }, "muster-host");
}

TEST(RecordCheck, RefusesAnExitCodeThatDoesNotFit) {
  expectContradiction(
      sickRecord(), [](Record& r) { r.exitCode = 0; }, "exit code 0");
  expectContradiction(
      healthyRecord(), [](Record& r) { r.exitCode = 1; }, "exit code 1");
}

TEST(RecordCheck, RefusesCountsThatDifferFromTheVerdicts) {
  expectContradiction(
      sickRecord(), [](Record& r) { r.accounting.counts[static_cast<int>(Outcome::kFail)] = 0; },
      "the stages hold 3");
  expectContradiction(
      healthyRecord(), [](Record& r) { r.stages[1].verdicts.pop_back(); }, "pass");
}

TEST(RecordCheck, RefusesAnAcceptanceThatDoesNotBalance) {
  expectContradiction(
      healthyRecord(), [](Record& r) { r.accounting.expected += 1; }, "were expected");
}

TEST(RecordCheck, RefusesAnAcceptanceOfNothing) {
  expectContradiction(
      healthyRecord(),
      [](Record& r) {
        r.stages.clear();
        settle(r);
      },
      "no measurement was checked");
}

TEST(RecordCheck, RefusesAnAcceptanceOverARequiredSkip) {
  expectContradiction(
      healthyRecord(),
      [](Record& r) {
        r.stages[0].verdicts[0].outcome = Outcome::kSkipped;
        r.stages[0].verdicts[0].required = true;
        settle(r);
      },
      "block acceptance");
}

TEST(RecordCheck, RefusesAStrictAcceptanceOverUnjudged) {
  Record record = healthyRecord();
  record.stages[0].verdicts[0].outcome = Outcome::kUnjudged;
  record.stages[0].verdicts[0].expectation.reset();
  settle(record);
  EXPECT_TRUE(checkRecord(record).ok());
  expectContradiction(
      record, [](Record& r) { r.strict = true; }, "block acceptance");
}

TEST(RecordCheck, RefusesMoreDevicesThanANodeHas) {
  const auto fill = [](Record& r) {
    Json& devices = r.inventory["devices"];
    while (devices.size() < kMostInventoryDevices)
      devices.push_back({{"id", "x" + std::to_string(devices.size())}});
  };
  Record record = healthyRecord();
  fill(record);
  EXPECT_TRUE(checkRecord(record).ok());
  expectContradiction(
      record,
      [](Record& r) {
        r.inventory["devices"].push_back({{"id", "one more"}});
      },
      "inventory.devices holds 1025 devices; at most 1024 are read");
}

TEST(RecordCheck, RefusesAScenarioWithoutTheMark) {
  expectContradiction(
      healthyRecord(), [](Record& r) { r.simulated = false; }, "simulated");
}

TEST(RecordCheck, RefusesASimulatedRunWithoutTheMark) {
  const auto pretend = [](Record& r) {
    r.simulated = false;
    r.scenario.clear();
  };
  expectContradiction(healthyRecord(), pretend, "simulated is false, but the backend is sim");
}

TEST(RecordCheck, RefusesANodeOutsideItsWorld) {
  expectContradiction(
      healthyRecord(), [](Record& r) { r.nodeRank = 1; }, "node_rank");
}

TEST(RecordCheck, ReadsAnUnbalancedRecordThatWasNotAccepted) {
  Record record = sickRecord();
  record.accounting.expected += 1;
  EXPECT_TRUE(checkRecord(record).ok());
}

TEST(RecordCheck, RefusesAStageThatPassedDespiteAFaultyComponent) {
  const auto name = [](Record& r, const std::string& who) {
    r.stages[1].group = {{"world_size", 3}, {"first_rank", 0}, {"nodes", 3}, {"culprit", who}};
  };
  Record record = healthyRecord();
  name(record, "");
  EXPECT_TRUE(checkRecord(record).ok());
  expectContradiction(
      record, [&](Record& r) { name(r, "node 1 (n1) was lost"); },
      "names a faulty component (node 1 (n1) was lost)");
  name(record, "node 1 (n1) was lost");
  record.stages[1].verdicts[0].outcome = Outcome::kError;
  settle(record);
  record.acceptance = Acceptance::kIncomplete;
  record.exitCode = 3;
  EXPECT_TRUE(checkRecord(record).ok()) << checkRecord(record).error().text();
}

TEST(SafePath, StaysInsideTheFolder) {
  for (const char* good : {"a", "a/b.log", "a..b/c", "...", "artifacts/x=1/rank 5.log"})
    EXPECT_TRUE(isSafeRelativePath(good)) << good;
  for (const char* bad : {"", "/", "/a", "..", "a/..", "../a", "a/../b", ".", "a/./b", "a//b", "a/", "a\\b"})
    EXPECT_FALSE(isSafeRelativePath(bad)) << bad;
  EXPECT_FALSE(isSafeRelativePath(std::string_view("a\0b", 3)));
}

TEST(RecordCheck, RefusesAPartialRunThatHidesIt) {
  EXPECT_TRUE(checkRecord(testing::partialRecord()).ok());
  const auto partial = testing::partialRecord();
  expectContradiction(
      partial, [](Record& r) { r.selection = {}; }, "run.selection is missing");
  expectContradiction(
      partial,
      [](Record& r) {
        r.stages.pop_back();
        settle(r);
      },
      "missing or not skipped");
  expectContradiction(
      partial, [](Record& r) { r.stages.back().state = StageState::kRan; }, "missing or not skipped");
  expectContradiction(
      partial,
      [](Record& r) {
        r.acceptance = Acceptance::kAccepted;
        r.exitCode = 0;
      },
      "a partial run is accepted");
  expectContradiction(
      sickRecord(), [](Record& r) { r.acceptance = Acceptance::kPartial; }, "called partial");
}

}  // namespace
}  // namespace muster
