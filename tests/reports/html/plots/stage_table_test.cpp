// SPDX-License-Identifier: Apache-2.0
// The table of a stage: every verdict in exactly one cell, figures comparable along a row.
#include "reports/html/plots/stage_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

#include "reports/html/plots/stage_plots.h"
#include "tests/runner/record/sample/sample_record.h"

namespace muster {
namespace {

using testing::healthyRecord;
using testing::sickRecord;

size_t cellsOf(const StageTable& table) {
  size_t count = 0;
  for (const auto& row : table.rows)
    for (const auto& [column, cell] : row.cells) count += cell.size();
  return count;
}

TEST(StageTable, HoldsEveryVerdictOnce) {
  for (const Record& record : {healthyRecord(), sickRecord()})
    for (const auto& stage : record.stages)
      EXPECT_EQ(cellsOf(stageTable(stage)), stage.verdicts.size()) << stage.name;
}

TEST(StageTable, KeepsVerdictsThatLookAlike) {
  StageRecord stage = healthyRecord().stages[1];
  stage.verdicts.push_back(stage.verdicts[0]);
  stage.verdicts.push_back(stage.verdicts[0]);
  EXPECT_EQ(cellsOf(stageTable(stage)), stage.verdicts.size());
}

/// Sorting a cell anew for each verdict would take many minutes here.
TEST(StageTable, HoldsManyVerdictsInOneCellTheWorstFirst) {
  StageRecord stage = healthyRecord().stages[1];
  stage.verdicts.resize(1);
  stage.verdicts.resize(100'000, stage.verdicts[0]);
  stage.verdicts.back().outcome = Outcome::kFail;
  const StageTable table = stageTable(stage);
  EXPECT_EQ(cellsOf(table), stage.verdicts.size());
  EXPECT_EQ(table.rows.at(0).cells.begin()->second.front()->outcome, Outcome::kFail);
}

/// Holding each requirement against all before it would take half a minute here.
TEST(StageTable, ListsManyRequirementsOfOneRowOnceEach) {
  StageRecord stage = healthyRecord().stages[1];
  ASSERT_TRUE(stage.verdicts[0].expectation);
  stage.verdicts.resize(1);
  stage.verdicts.resize(100'000, stage.verdicts[0]);
  for (size_t i = 2; i < stage.verdicts.size(); ++i)
    stage.verdicts[i].expectation->source = "source " + std::to_string(100'000 + i);
  const std::clock_t before = std::clock();
  EXPECT_EQ(stageTable(stage).rows.at(0).wanted.size(), stage.verdicts.size() - 1);
  EXPECT_LT((std::clock() - before) / CLOCKS_PER_SEC, 10);
}

TEST(StageTable, GivesSharedDevicesAColumnPerRank) {
  StageRecord stage = healthyRecord().stages[1];
  stage.verdicts.resize(8);
  for (auto& verdict : stage.verdicts) verdict.device = "cpu0";
  const StageTable table = stageTable(stage);
  EXPECT_EQ(table.rows.size(), 1u);
  ASSERT_EQ(table.columns.size(), 8u);
  EXPECT_EQ(table.columns[0], "cpu0 rank 0");
}

TEST(StageTable, SortsDevicesAsPeopleDo) {
  EXPECT_TRUE(naturalLess("gpu2", "gpu10"));
  EXPECT_FALSE(naturalLess("gpu10", "gpu2"));
  EXPECT_TRUE(naturalLess("gpu", "gpu0"));
  EXPECT_FALSE(naturalLess("gpu1", "gpu1"));
  EXPECT_TRUE(naturalLess("gpu9", "nic0"));
}

TEST(StageTable, UsesOneUnitAlongARow) {
  const Record record = sickRecord();
  const StageTable table = stageTable(record.stages[1]);
  const TableRow& row = table.rows[1];  // fp8: 1.4 PFLOP/s, and 959 TFLOP/s on the slow GPU
  EXPECT_EQ(row.unit, "PFLOP/s");
  EXPECT_EQ(cellText(row, *row.cells.at("gpu3").front()).substr(0, 2), "0.");
  EXPECT_EQ(cellText(row, *row.cells.at("gpu0").front()).size(),
            cellText(row, *row.cells.at("gpu3").front()).size());
  EXPECT_EQ(row.worst, Outcome::kFail);
}

TEST(StageTable, NamesTheOutcomeWhereNothingWasMeasured) {
  const Record record = sickRecord();
  const StageTable table = stageTable(record.stages[4]);
  EXPECT_EQ(cellText(table.rows[1], *table.rows[1].cells.at("gpu5").front()), "error");
}

TEST(StageTable, FindsTheSamplesBehindAVerdict) {
  const Record record = healthyRecord();
  const StageRecord& stage = record.stages[1];
  const auto samples = StageSamples().of(stage, stage.verdicts[3]);
  EXPECT_EQ(samples, stage.measurements[3].samples);
  EXPECT_EQ(samplesText({}, "B/s"), "");
  EXPECT_EQ(samplesText({1}, "B/s"), "n 1");
  EXPECT_EQ(samplesText({1, 1, 1}, "B/s"), "n 3, cv 0%");
  EXPECT_EQ(samplesText({0, 0, 3}, "count"), "n 3");
  EXPECT_EQ(samplesText({0, 1}, "bool"), "n 2");
}

TEST(StageTable, TellsAllThatWasWantedOfAFigureInOneRow) {
  StageRecord stage = healthyRecord().stages[1];
  stage.verdicts.resize(8);
  const auto first = stage.verdicts;
  for (auto verdict : first) {
    verdict.expectation->kind = CheckKind::kWithin;
    verdict.limitText = "within 10% of the node median";
    if (verdict.device == "gpu2") verdict.outcome = Outcome::kFail;
    stage.verdicts.push_back(verdict);
  }
  const StageTable table = stageTable(stage);
  ASSERT_EQ(table.rows.size(), 1u);
  ASSERT_EQ(table.rows[0].wanted.size(), 2u);
  EXPECT_EQ(table.rows[0].wanted[0].worst, Outcome::kPass);
  EXPECT_EQ(table.rows[0].wanted[1].worst, Outcome::kFail);
  EXPECT_EQ(table.rows[0].cells.at("gpu2").front()->outcome, Outcome::kFail);
}

TEST(StageTable, KeepsStabilityApartFromTheFigure) {
  StageRecord stage = healthyRecord().stages[1];
  stage.verdicts.resize(8);
  auto verdict = stage.verdicts[0];
  verdict.expectation->kind = CheckKind::kCvMax;
  verdict.observed = 0.004;
  stage.verdicts.push_back(verdict);
  const StageTable table = stageTable(stage);
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[1].unit, "%");
  EXPECT_EQ(cellText(table.rows[1], *table.rows[1].cells.at("gpu0").front()), "0.400");
}

TEST(StageTable, SplitsDevicesAndTheNode) {
  StageRecord stage = healthyRecord().stages[1];
  stage.verdicts[0].device.clear();
  stage.verdicts[0].metric = "telemetry.unreadable_sources";
  const auto tables = splitTables(stageTable(stage));
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_EQ(tables[0].columns.size(), 8u);
  EXPECT_EQ(tables[1].columns, std::vector<std::string>{"node"});
  EXPECT_EQ(cellsOf(tables[0]) + cellsOf(tables[1]), stage.verdicts.size());
  EXPECT_EQ(tables[1].rows.size(), 1u);
}

TEST(StagePlots, DrawCurvesForSweepsAndBarsForTheRest) {
  const Record record = sickRecord();
  size_t dropped = 0;
  EXPECT_EQ(stagePlots(record.stages[3], stageTable(record.stages[3]), dropped).size(), 0u);
  EXPECT_EQ(stagePlots(record.stages[1], stageTable(record.stages[1]), dropped).size(), 3u);
  EXPECT_EQ(dropped, 0u);
}

TEST(StagePlots, PutDeviationsFirst) {
  const Record record = sickRecord();
  size_t dropped = 0;
  EXPECT_NE(stagePlots(record.stages[2], stageTable(record.stages[2]), dropped)[0].find("bar warn"),
            std::string::npos);
}

TEST(StagePlots, SurroundAVerdictWithItsPeers) {
  const Record record = sickRecord();
  const StageTable table = stageTable(record.stages[1]);
  const std::string svg = plotAround(table, record.stages[1].verdicts[3]);
  for (const char* gpu : {"gpu0", "gpu3", "gpu7"}) EXPECT_NE(svg.find(gpu), std::string::npos);
  EXPECT_EQ(plotAround(table, Verdict()), "");
  Verdict spread = record.stages[1].verdicts[3];
  spread.expectation->kind = CheckKind::kCvMax;
  EXPECT_EQ(plotAround(table, spread), "") << "20% is no throughput";
}

/// Devices, ranks or labels: whatever tells thousands of measurements of one metric apart.
TEST(StageTable, FindsTheSamplesOfThousandsInTime) {
  constexpr int kMany = 20'000;
  const std::clock_t before = std::clock();
  for (const std::string differs : {"device", "rank", "label"}) {
    StageRecord stage = healthyRecord().stages[1];
    const auto set = [&](auto& one, int i) {
      if (differs == "device") one.device = "g" + std::to_string(i);
      if (differs == "rank") one.rank = i;
      one.labels = {};
      if (differs == "label") one.labels["size"] = std::to_string(i);
    };
    stage.verdicts.resize(1);
    stage.measurements.resize(1);
    stage.verdicts.resize(kMany, stage.verdicts[0]);
    stage.measurements.resize(kMany, stage.measurements[0]);
    StageSamples samples;
    for (int i = 0; i < kMany; ++i) {
      set(stage.verdicts[i], i);
      set(stage.measurements[i], i);
      stage.measurements[i].samples = {1.0 * i};
    }
    for (int i = 0; i < kMany; ++i)
      EXPECT_EQ(samples.of(stage, stage.verdicts[i]), std::vector<double>{1.0 * i}) << differs;
  }
  EXPECT_LT((std::clock() - before) / CLOCKS_PER_SEC, 10);
}

}  // namespace
}  // namespace muster
