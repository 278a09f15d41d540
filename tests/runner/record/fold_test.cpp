// SPDX-License-Identifier: Apache-2.0
// Measurements, verdicts and telemetry inside their stage: what is written is short, and gives back
// everything.
#include <gtest/gtest.h>

#include <cmath>

#include "runner/core/digits.h"
#include "runner/core/units.h"
#include "runner/record/fold/measurement_fold.h"
#include "runner/record/record.h"
#include "runner/record/telemetry_fold.h"
#include "runner/record/verdict_fold.h"

namespace muster {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Measurement power(int rank, std::vector<double> samples) {
  Measurement m;
  m.metric = "env.power";
  m.unit = "W";
  m.caseId = "telemetry";
  m.rank = rank;
  m.device = "gpu" + std::to_string(rank);
  m.labels = {{"device", m.device}, {"kind", "gpu"}};
  m.samples = std::move(samples);
  return m;
}

StageRecord stageOf(std::vector<Measurement> measurements) {
  StageRecord stage;
  stage.name = "gemm";
  stage.scope = Scope::kDevice;
  stage.state = StageState::kRan;
  stage.outcome = Outcome::kPass;
  stage.evidence = {{"expectations", Json::array()}};
  stage.measurements = std::move(measurements);
  return stage;
}

StageRecord again(const StageRecord& stage) {
  const auto json = parseJson(dumpJson(toJson(stage)));
  EXPECT_TRUE(json.ok());
  auto back = stageRecordFromJson(*json, "stage");
  EXPECT_TRUE(back.ok()) << back.error().text();
  return back.ok() ? std::move(back).value() : StageRecord{};
}

TEST(MeasurementFold, MakesOneObjectOfAllRanks) {
  const Json json = foldedMeasurements({power(0, {70, 71.5}), power(1, {69, 68})});
  EXPECT_EQ(dumpJson(json),
            R"([{"metric":"env.power","unit":"W","case":"telemetry","labels":{"kind":"gpu"},)"
            R"("rows":{"rank":[0,1],"device":["gpu0","gpu1"],"samples":[[70,71.5],[69,68]]}}])");
}

TEST(MeasurementFold, TellsALabelFromADevice) {
  Measurement unlabelled = power(1, {1});
  unlabelled.labels.erase("device");
  Measurement other = power(2, {1});
  other.labels["device"] = "gpu7";
  Measurement none = power(3, {1});
  none.device.clear();
  const StageRecord back = again(stageOf({power(0, {1}), unlabelled, other, none}));
  ASSERT_EQ(back.measurements.size(), 4u);
  for (const Measurement& m : back.measurements) {
    const auto label = m.labels.find("device");
    const std::string text = label == m.labels.end() ? "none" : label->second;
    EXPECT_EQ(text, m.rank == 0 ? "gpu0" : m.rank == 1 ? "none" : m.rank == 2 ? "gpu7" : "gpu3") << m.rank;
    EXPECT_EQ(m.labels.at("kind"), "gpu");
    EXPECT_EQ(m.device.empty(), m.rank == 3);
  }
}

TEST(MeasurementFold, KeepsRepeatsAttemptsAndTexts) {
  Measurement second = power(0, {5});
  second.repeat = 1;
  Measurement retried = power(0, {6});
  retried.attempt = 2;
  Measurement text = power(0, {});
  text.metric = "env.driver";
  text.unit = "text";
  text.text = "550.54";
  const StageRecord back = again(stageOf({power(0, {4}), second, retried, text}));
  ASSERT_EQ(back.measurements.size(), 4u);
  EXPECT_EQ(back.measurements[1].repeat, 1);
  EXPECT_EQ(back.measurements[2].attempt, 2);
  EXPECT_EQ(back.measurements[2].samples, std::vector<double>{6});
  EXPECT_EQ(back.measurements[3].text, "550.54");
}

Verdict passOf(const Measurement& m, double limit) {
  Verdict v;
  v.outcome = Outcome::kPass;
  v.stage = "gemm";
  v.caseId = m.caseId;
  v.metric = m.metric;
  v.device = m.device;
  v.rank = m.rank;
  v.labels = m.labels;
  v.expectation = Expectation{};
  v.expectation->metric = m.metric;
  v.expectation->kind = CheckKind::kMax;
  v.expectation->limit = limit;
  v.expectation->unit = m.unit;
  v.expectation->remedy = v.remedy = "Look at the fans.";
  v.observed = m.samples.front();
  v.observedText = formatQuantity(v.observed, m.unit);
  v.limit = limit;
  v.limitText = "at most " + formatQuantity(limit, m.unit);
  v.margin = (limit - v.observed) / limit;
  v.detail = comparisonText(v);
  return v;
}

StageRecord judged(std::vector<Measurement> measurements) {
  StageRecord stage = stageOf(std::move(measurements));
  for (const Measurement& m : stage.measurements) stage.verdicts.push_back(passOf(m, 700));
  stage.evidence["expectations"].push_back(toJson(*stage.verdicts.front().expectation));
  return stage;
}

TEST(VerdictFold, LeavesOutThePlainWordsOfAPass) {
  const StageRecord stage = judged({power(0, {350}), power(1, {420})});
  const Json json = foldedVerdicts(stage);
  EXPECT_EQ(
      dumpJson(json),
      R"([{"outcome":"pass","case":"telemetry","metric":"env.power","labels":{"kind":"gpu"},"expectation":0,)"
      R"("limit":700.0,"limit_text":"at most 700 W","rows":{"device":["gpu0","gpu1"],"rank":[0,1],)"
      R"("observed":[350.0,420.0],"margin":[0.5,0.4]}}])");
  const StageRecord back = again(stage);
  ASSERT_EQ(back.verdicts.size(), 2u);
  EXPECT_EQ(back.verdicts[1].detail, "gpu1 (kind=gpu): 420 W, required at most 700 W (40% below)");
  EXPECT_EQ(back.verdicts[1].observedText, "420 W");
  EXPECT_EQ(back.verdicts[1].remedy, "Look at the fans.");
  EXPECT_EQ(toJson(back), toJson(stage));
}

TEST(VerdictFold, KeepsEveryOtherWord) {
  StageRecord stage = judged({power(0, {350}), power(1, {420}), power(2, {430}), power(3, {440})});
  stage.verdicts[0].detail = "gpu0: a word of its own";
  stage.verdicts[1].detail.clear();
  stage.verdicts[1].observedText.clear();
  stage.verdicts[2].outcome = Outcome::kFail;
  stage.verdicts[3].observed = stage.verdicts[3].margin = kNaN;
  stage.verdicts[3].remedy = "Another.";
  const StageRecord back = again(stage);
  ASSERT_EQ(back.verdicts.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(back.verdicts[i].detail, stage.verdicts[i].detail) << i;
    EXPECT_EQ(back.verdicts[i].observedText, stage.verdicts[i].observedText) << i;
    EXPECT_EQ(back.verdicts[i].remedy, stage.verdicts[i].remedy) << i;
  }
  const std::string text = dumpJson(foldedVerdicts(stage));
  EXPECT_NE(text.find(stage.verdicts[2].detail), std::string::npos) << "what failed is told in the file";
}

TelemetrySeries seriesOf(const Measurement& m, std::vector<double> time) {
  TelemetrySeries series;
  series.metric = m.metric;
  series.unit = m.unit;
  series.device = m.device;
  series.time = std::move(time);
  series.value = m.samples;
  series.summary = roundedSummary(summarize(m.samples), kSampleDigits);
  return series;
}

TEST(TelemetryFold, WritesEachValueAndEachTimeOnce) {
  StageRecord stage = stageOf({power(0, {70, 71, 72, 73}), power(1, {69, 68, 67, 66})});
  for (const Measurement& m : stage.measurements)
    stage.telemetry.push_back(seriesOf(m, {0, 1.003, 2.007, 3.01}));
  EXPECT_EQ(dumpJson(foldedTelemetry(stage)),
            R"({"times":[{"start":0,"step":1.00333333,"n":4}],"series":[{"time":0,"rows":{"of":[0,1]}}]})");
  const StageRecord back = again(stage);
  ASSERT_EQ(back.telemetry.size(), 2u);
  EXPECT_EQ(back.telemetry[1].device, "gpu1");
  EXPECT_EQ(back.telemetry[1].time, stage.telemetry[1].time);
  EXPECT_EQ(back.telemetry[1].value, stage.telemetry[1].value);
  EXPECT_EQ(back.telemetry[1].summary.stddev, stage.telemetry[1].summary.stddev);
}

TEST(TelemetryFold, KeepsWhatCannotBeShared) {
  StageRecord stage = stageOf({power(0, {70, 71, 72})});
  stage.telemetry.push_back(seriesOf(stage.measurements[0], {0, 1, 5}));
  stage.telemetry.push_back(stage.telemetry[0]);
  stage.telemetry.push_back(stage.telemetry[0]);
  stage.telemetry[1].value = {1, kNaN, 3};
  stage.telemetry[2].summary.n = 600;
  const StageRecord back = again(stage);
  ASSERT_EQ(back.telemetry.size(), 3u);
  EXPECT_EQ(toJson(back), toJson(stage));
  size_t withMore = 0;
  for (const TelemetrySeries& series : back.telemetry) withMore += series.summary.n == 600 ? 1 : 0;
  EXPECT_EQ(withMore, 1u);
}

}  // namespace
}  // namespace muster
