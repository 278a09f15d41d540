// SPDX-License-Identifier: Apache-2.0
// Forged records: reading one costs as much as its size, never the product of two of its counts.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "runner/record/evidence_json.h"
#include "runner/record/findings/deviations.h"
#include "runner/record/record_check.h"
#include "runner/record/telemetry_fold.h"
#include "runner/system/files.h"
#include "tests/runner/record/sample/sample_record.h"
#include "tests/support/cpu_time.h"

namespace muster {
namespace {

using testing::healthyRecord;
using testing::settle;

/// Each of these takes less than a second; the product of their counts took more than ten.
class RecordCost : public testing::CpuTimeTest {
 protected:
  RecordCost() : CpuTimeTest(5) {}
};

TEST_F(RecordCost, OfWarningsOverExpectations) {
  Record record = healthyRecord();
  StageRecord& stage = record.stages[1];
  Json& list = stage.evidence["expectations"];
  while (list.size() < 1'000) list.push_back(list[0]);
  Verdict warning = stage.verdicts[0];
  warning.outcome = Outcome::kWarn;
  stage.verdicts.insert(stage.verdicts.end(), 40'000, warning);
  settle(record);
  EXPECT_TRUE(checkRecord(record).ok()) << checkRecord(record).error().text();
}

TEST_F(RecordCost, OfWaivedVerdictsOverWaivers) {
  constexpr int kCount = 60'000;
  Record record = healthyRecord();
  StageRecord& stage = record.stages[1];
  Verdict waived = stage.verdicts[0];
  waived.outcome = Outcome::kWaived;
  stage.verdicts.insert(stage.verdicts.end(), kCount, waived);
  WaiverRecord waiver;
  waiver.covered = 1;
  waiver.metric = std::string(waived.metric.size(), 'x');
  record.waivers.assign(kCount, waiver);
  record.waivers.back().metric = waived.metric;
  settle(record);
  EXPECT_TRUE(checkRecord(record).ok()) << checkRecord(record).error().text();
  record.waivers.back().stage = "another";
  EXPECT_FALSE(checkRecord(record).ok());
  record.waivers.back().stage = stage.name;
  EXPECT_TRUE(checkRecord(record).ok());
}

TEST_F(RecordCost, OfImportedFilesOverStages) {
  constexpr int kCount = 40'000;
  Record record = healthyRecord();
  record.simulated = false;
  record.scenario.clear();
  record.backend = kImportedBackend;
  StageRecord empty;
  for (int i = 0; i < kCount; ++i) {
    empty.name = std::string(100, 's') + std::to_string(100'000 + i);
    record.stages.push_back(empty);
    record.imported.emplace_back().stage = std::string(100, 's') + std::to_string(99'999 + kCount);
  }
  EXPECT_TRUE(checkRecord(record).ok()) << checkRecord(record).error().text();
  EXPECT_EQ(importedTexts(record).size(), size_t{kCount});
}

TEST_F(RecordCost, OfLongPathsOfIncludesOverTheTextOfAPlan) {
  constexpr size_t kLong = 60'000;
  Record record = healthyRecord();
  record.plan.text = '#' + std::string(900'000, 'a') + "\n#:included a.toml v\n";
  record.plan.sha256 = sha256Hex(record.plan.text);
  record.plan.includes["a.toml"] = "v";
  const auto back = recordFromJson(toJson(record));
  ASSERT_TRUE(back.ok()) << back.error().text();
  EXPECT_EQ(back->plan.includes, record.plan.includes);
  std::string tail;
  for (char c = 'b'; c <= 'k'; ++c) {
    const std::string file = std::string(kLong, 'a') + c;
    record.plan.includes[file] = "v";
    tail += "#:included " + file + " v\n";
  }
  record.plan.text = '#' + std::string(400'000, 'a') + "\n#:included a.toml v\n" + tail;
  record.plan.sha256 = sha256Hex(record.plan.text);
  EXPECT_TRUE(recordFromJson(toJson(record)).ok());
  record.plan.includes["other"] = "v";
  EXPECT_FALSE(recordFromJson(toJson(record)).ok());
}

TEST_F(RecordCost, OfPrerequisitesOverTheReasonOfASkip) {
  Record record = healthyRecord();
  StageRecord skipped = record.stages[1];
  skipped.state = StageState::kSkipped;
  skipped.verdicts.clear();
  record.stages.resize(1);
  record.stages[0].verdicts[0].outcome = Outcome::kFail;
  for (int i = 0; i < 2'000; ++i) {
    record.stages[0].name = std::string(900, 'h') + std::to_string(i);
    record.stages.push_back(record.stages[0]);
    skipped.needs.push_back(record.stages[0].name);
  }
  skipped.reason = std::string(400'000, 'h');
  record.stages.push_back(skipped);
  EXPECT_TRUE(stagesStoppedByFailure(record).empty());
  StageRecord& last = record.stages.back();
  last.reason = "prerequisite stage " + last.needs[7] + " did not pass (fail)";
  EXPECT_EQ(stagesStoppedByFailure(record), std::set<const StageRecord*>{&last});
}

TEST_F(RecordCost, OfFlakyVerdictsOverKeysOfTheEvidence) {
  Record record = healthyRecord();
  StageRecord& stage = record.stages[1];
  stage.evidence = Json::object();
  auto& members = stage.evidence.get_ref<Json::object_t&>();
  for (int i = 0; i < 20'000; ++i) members.emplace_back(fmt::format("allow_{:05}", i), 0);
  members.emplace_back("allow_flaky", true);
  Verdict flaky = stage.verdicts[0];
  flaky.outcome = Outcome::kFlaky;
  stage.verdicts.assign(100'000, flaky);
  const auto found = deviations(record);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FALSE(found[0].blocks);
}

TEST_F(RecordCost, OfSeriesThatPointAtEqualMeasurements) {
  constexpr size_t kCount = 50'000;
  StageRecord stage;
  Measurement m = healthyRecord().stages[1].measurements[0];
  m.samples = {1, 2, 3};
  stage.measurements.assign(kCount, m);
  TelemetrySeries series;
  series.metric = m.metric;
  series.unit = m.unit;
  series.device = m.device;
  series.time = series.value = m.samples;
  stage.telemetry.assign(kCount, series);
  const Json folded = foldedTelemetry(stage);
  const Json& of = folded["series"][0]["rows"]["of"];
  ASSERT_EQ(of.size(), kCount);
  for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(of[i], i) << "each its own, in their order";
}

TEST_F(RecordCost, OfMetricsOfACaseWithALongName) {
  StageRecord stage;
  stage.evidence = evidenceToJson({});
  std::vector<std::string> metrics;
  for (int i = 0; i < 100'000; ++i) metrics.push_back(fmt::format("a.{}", i));
  const std::string id(8'000'000, 'c');
  stage.evidence["case_metrics"][id] = metrics;
  const auto evidence = evidenceFromRecord(stage);
  ASSERT_TRUE(evidence.ok()) << evidence.error().text();
  EXPECT_EQ(evidence->caseMetrics.at(id).size(), metrics.size());
}

}  // namespace
}  // namespace muster
