// SPDX-License-Identifier: Apache-2.0
// Deviations: nothing that matters is left out, and one cause is told once.
#include "runner/record/findings/deviations.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/runner/record/sample/sample_record.h"

namespace muster {
namespace {

using testing::healthyRecord;
using testing::settle;
using testing::sickRecord;

size_t verdictsIn(const std::vector<Deviation>& list) {
  size_t count = 0;
  for (const auto& deviation : list) count += deviation.items.size();
  return count;
}

TEST(Deviations, AreNoneOnAHealthyNode) {
  EXPECT_TRUE(deviations(healthyRecord()).empty());
  EXPECT_TRUE(notJudged(healthyRecord()).empty());
}

TEST(Deviations, HoldEveryVerdictThatDidNotPassExactlyOnce) {
  const Record record = sickRecord();
  const size_t told =
      verdictsIn(deviations(record)) + verdictsIn(notJudged(record)) + verdictsIn(waived(record));
  EXPECT_EQ(told, record.accounting.total() - record.accounting.of(Outcome::kPass));
}

TEST(Deviations, TellOneCauseOnce) {
  const Record record = sickRecord();
  const auto found = deviations(record);
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0].outcome, Outcome::kFail);
  EXPECT_EQ(found[0].items.size(), 3u);
  EXPECT_EQ(found[0].devices(), std::vector<std::string>{"gpu3"});
  EXPECT_EQ(found[0].commonCase(), "");
  EXPECT_EQ(found[0].first().metric, "compute.gemm_throughput");
  EXPECT_EQ(found[0].origins().size(), 1u);
  EXPECT_EQ(found[0].remedies().size(), 1u);
}

TEST(Deviations, TellEverySourceAndRemedyOfAFinding) {
  Record record = sickRecord();
  Verdict& second = record.stages[1].verdicts[11];  // gpu3, fp8
  second.expectation->source = "another source";
  second.remedy = "another remedy";
  const auto found = deviations(record);
  EXPECT_EQ(found[0].items.size(), 3u);
  EXPECT_EQ(found[0].origins().size(), 2u);
  EXPECT_EQ(found[0].remedies().size(), 2u);
}

TEST(Deviations, LeaveOutDetailsThatOnlyRepeat) {
  Record record = sickRecord();
  record.stages[1].verdicts[11].detail = record.stages[1].verdicts[19].detail = "";
  EXPECT_EQ(deviations(record)[0].commonDetail(), "");
  EXPECT_NE(deviations(record)[2].commonDetail(), "");
}

TEST(Deviations, PutBlockingOnesFirst) {
  const Record record = sickRecord();
  const auto found = deviations(record);
  ASSERT_EQ(found.size(), 4u);
  EXPECT_TRUE(found[0].blocks && found[1].blocks && found[2].blocks);
  EXPECT_FALSE(found[3].blocks);
  EXPECT_EQ(found[3].outcome, Outcome::kWarn);
}

TEST(Deviations, KnowTheRankThatDied) {
  const Record record = sickRecord();
  const auto found = deviations(record);
  ASSERT_EQ(found.size(), 4u);
  ASSERT_NE(found[1].items[0].rank, nullptr);
  EXPECT_EQ(found[1].items[0].rank->signal, "SIGSEGV");
  EXPECT_NE(found[1].items[0].rank->rerun.find("rank5"), std::string::npos);
}

TEST(Deviations, KnowTheLastAttemptOfARank) {
  Record record = sickRecord();
  RankRecord again = record.stages[4].ranks[5];
  again.attempt = 2;
  again.signal = "SIGABRT";
  record.stages[4].ranks.push_back(again);
  EXPECT_EQ(deviations(record)[1].items[0].rank->signal, "SIGABRT");
}

TEST(Deviations, BlockOnSkipsThatAreRequired) {
  Record record = sickRecord();
  record.stages[5].verdicts[0].required = true;
  settle(record);
  const auto found = deviations(record);
  EXPECT_EQ(found.size(), 5u);
  EXPECT_EQ(found[3].outcome, Outcome::kSkipped);
  EXPECT_TRUE(found[3].blocks);
}

TEST(Deviations, BlockOnUnjudgedWhenStrict) {
  Record record = sickRecord();
  EXPECT_EQ(notJudged(record).size(), 2u);
  record.strict = true;
  EXPECT_EQ(notJudged(record).size(), 1u);
  EXPECT_EQ(deviations(record).size(), 5u);
}

TEST(Deviations, DoNotBlockOnFlakyWhereThePlanAllowsIt) {
  Record record = sickRecord();
  record.stages[3].evidence = {{"allow_flaky", true}};
  const auto found = deviations(record);
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[2].outcome, Outcome::kFlaky);
  EXPECT_FALSE(found[2].blocks);
}

TEST(Deviations, PickTheWorstByItsMargin) {
  const Record record = sickRecord();
  const auto found = deviations(record);
  for (const auto& item : found[0].items) EXPECT_LE(found[0].worst().verdict->margin, item.verdict->margin);
}

/// `count` failed verdicts of `metric`, one on each of the first stages, and the stages they are of.
std::vector<std::string> failInStages(Record& record, const std::string& metric, const std::string& origin,
                                      size_t count) {
  std::vector<std::string> stages;
  for (size_t i = 0; i < count; ++i) {
    Verdict verdict;
    verdict.outcome = Outcome::kFail;
    verdict.metric = metric;
    verdict.stage = stages.emplace_back(record.stages[i].name);
    verdict.device = "gpu6";
    verdict.observed = 1 + static_cast<double>(i);
    verdict.margin = -verdict.observed;
    verdict.required = i > 0;  // an optional stage is one of them
    verdict.expectation.emplace();
    verdict.expectation->metric = metric;
    verdict.expectation->origin = origin;
    verdict.expectation->unit = "count";
    record.stages[i].verdicts.push_back(verdict);
  }
  settle(record);
  return stages;
}

TEST(Deviations, TellOverAllStagesWhatIsExpectedInEveryStage) {
  Record record = healthyRecord();
  const auto stages = failInStages(record, "env.throttle_thermal", "standing", 3);
  const auto found = deviations(record);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].stages(), stages);
  EXPECT_EQ(found[0].items.size(), 3u);
  EXPECT_EQ(found[0].worst().stage, &record.stages[2]);
}

TEST(Deviations, KeepStagesApartInWhatThePlanExpects) {
  Record record = healthyRecord();
  failInStages(record, "env.throttle_thermal", "plan", 3);
  EXPECT_EQ(deviations(record).size(), 3u);
}

TEST(Deviations, NameTheCulpritThatTheTestFound) {
  Record record = healthyRecord();
  failInStages(record, "ring.culprits", "plan", 1);
  EXPECT_EQ(deviations(record)[0].who(), "gpu6");
  record.stages[0].verdicts.back().labels = {{"culprit", "link n2 - n3"}, {"kind", "link"}};
  EXPECT_EQ(deviations(record)[0].who(), "link n2 - n3");
}

TEST(Deviations, TellTheFirstFaultOfWrongResultsAlone) {
  Record record = healthyRecord();
  failInStages(record, "collective.collective_wrong_elements", "plan", 1);
  Measurement fault;
  fault.metric = "collective.collective_first_fault";
  fault.unit = "text";
  fault.text = "1 wrong elements, the first at 2048, from rank 6";
  fault.device = "gpu6";
  fault.informational = true;
  record.stages[0].measurements.push_back(fault);
  EXPECT_EQ(deviations(record)[0].firstFault(), fault.text);
  record.stages[0].measurements.back().device = "gpu1";
  EXPECT_EQ(deviations(record)[0].firstFault(), "") << "what another device says";
  record.stages[0].measurements.back().device = "gpu6";
  record.stages[0].verdicts.back().expectation->unit = "B/s";
  EXPECT_EQ(deviations(record)[0].firstFault(), "") << "a rate is no count of wrong results";
}

/// Comparing each of them with all others would take many minutes here.
TEST(Deviations, OfManyDevicesListEachOnce) {
  constexpr size_t kDevices = 200'000;
  Record record = healthyRecord();
  StageRecord& stage = record.stages[1];
  Verdict verdict = stage.verdicts[0];
  verdict.outcome = Outcome::kFail;
  verdict.metric = "compute.gemm_wrong_elements";
  verdict.rank = -1;
  verdict.expectation->unit = "count";
  verdict.expectation->origin = "plan";
  Measurement fault;
  fault.metric = "compute.gemm_first_fault";
  fault.unit = "text";
  fault.text = "another case";
  for (size_t i = 0; i < kDevices; ++i) {
    verdict.device = fault.device = "device" + std::to_string(i);
    verdict.expectation->source = "source " + verdict.device;
    verdict.remedy = "remedy of " + verdict.device;
    stage.verdicts.push_back(verdict);
    stage.measurements.push_back(fault);
    RankRecord rank;
    rank.rank = static_cast<int>(1000 + i);
    rank.device = verdict.device;
    stage.ranks.push_back(rank);
  }
  const Deviation found = deviations(record)[0];
  EXPECT_EQ(found.devices().size(), kDevices);
  EXPECT_EQ(found.devices()[1], "device1");
  EXPECT_EQ(found.origins().size(), kDevices);
  EXPECT_EQ(found.remedies().size(), kDevices);
  EXPECT_EQ(found.items[2].rank->device, "device2");
  EXPECT_EQ(found.firstFault(), "");
  stage.measurements.back().caseId = verdict.caseId;
  EXPECT_EQ(deviations(record)[0].firstFault(), "another case");
}

TEST(DeviationTexts, SayWhatToDoAboutTheCulpritThatWasFound) {
  const std::string remedy = "link: replace the cable; node: its NIC; node-rail: that NIC and its cable";
  EXPECT_EQ(remedyFor(remedy, "link"), "link: replace the cable");
  EXPECT_EQ(remedyFor(remedy, "node"), "node: its NIC");
  EXPECT_EQ(remedyFor(remedy, "node-rail"), "node-rail: that NIC and its cable");
  EXPECT_EQ(remedyFor(remedy, "moon"), remedy);
  EXPECT_EQ(remedyFor("Replace it; link: no list", ""), "Replace it; link: no list");
}

TEST(DeviationTexts, DoNotRepeatThatTheSkuIsUnknown) {
  Record record = healthyRecord();
  EXPECT_EQ(skuNote(record), record.skuHow);
  record.profile.name.clear();
  record.skuHow = "unknown: no profile matches gpu0";
  EXPECT_EQ(skuNote(record), "no profile matches gpu0");
}

TEST(DeviationTexts, NameDevicesShortly) {
  EXPECT_EQ(devicesText({"gpu1", "gpu3"}), "gpu1, gpu3");
  EXPECT_EQ(devicesText({}), "");
  EXPECT_EQ(devicesText(std::vector<std::string>(20, "g")), "g, g, g, g, g, g, g, g and 12 more");
}

TEST(DeviationTexts, SayOnWhichSideOfTheLimitAValueIs) {
  const auto text = [](double observed, double margin) {
    Verdict verdict;
    verdict.observed = observed;
    verdict.limit = 100;
    verdict.margin = margin;
    return marginText(verdict);
  };
  EXPECT_EQ(text(74.2, -0.258), "26% below limit");
  EXPECT_EQ(text(112, -0.12), "12% above limit");
  EXPECT_EQ(text(104.1, 0.041), "4.1% to spare");
  EXPECT_EQ(text(100, 0), "at the limit");
  EXPECT_EQ(text(50, std::numeric_limits<double>::quiet_NaN()), "");
}

TEST(DeviationTexts, WriteSizesAsPeopleDo) {
  Verdict verdict;
  verdict.stage = "copy";
  verdict.caseId = "copy[bytes=65536]";
  verdict.labels = {{"bytes", "65536"}, {"device", "gpu0"}, {"op", "h2d"}};
  EXPECT_EQ(caseText(verdict), "bytes=64 KiB op=h2d");
}

/// A verdict about the faulty component of a network, and what the test measured of it.
void accuse(Record& record, const std::vector<std::pair<std::string, double>>& figures) {
  StageRecord& stage = record.stages[1];
  Verdict& verdict = stage.verdicts[0];
  verdict.outcome = Outcome::kFail;
  verdict.metric = "ring.culprits";
  verdict.labels = {{"culprit", "link n2 - n3"}, {"kind", "link"}};
  verdict.observedText = "1";
  verdict.limitText = "at most 0";
  for (const auto& [name, value] : figures) {
    Measurement m;
    m.metric = "ring.culprit_" + name;
    m.caseId = verdict.caseId;
    m.labels = verdict.labels;
    m.samples = {value};
    stage.measurements.push_back(m);
  }
}

TEST(MeasuredText, GivesTheBandwidthOfAFaultyComponentBesideItsPeers) {
  const auto textOf = [](const std::vector<std::pair<std::string, double>>& figures) {
    Record record = healthyRecord();
    accuse(record, figures);
    return measuredText(record.stages[1], record.stages[1].verdicts[0]);
  };
  EXPECT_EQ(textOf({{"bandwidth", 28.8e9}, {"peer_bandwidth", 48e9}}), "28.8 of 48 GB/s, 60%");
  EXPECT_EQ(textOf({{"latency", 9e-6}, {"peer_latency", 3e-6}}), "9us of 3us, 300%");
  EXPECT_EQ(textOf({{"loss", 0.4}}), "60% of its peers");
  EXPECT_EQ(textOf({}), "1");
  Record record = healthyRecord();
  accuse(record, {});
  EXPECT_EQ(wantedText(record.stages[1].verdicts[0]), "no faulty component");
}

TEST(MeasuredText, OfThousandsOfFaultyComponentsIsFoundInTime) {
  Record record = healthyRecord();
  accuse(record, {{"loss", 0.4}});
  StageRecord& stage = record.stages[1];
  const Verdict verdict = stage.verdicts[0];
  const Measurement loss = stage.measurements.back();
  for (int i = 0; i < 20'000; ++i) {
    stage.verdicts.push_back(verdict);
    stage.measurements.push_back(loss);
    stage.verdicts.back().labels["culprit"] = stage.measurements.back().labels["culprit"] = std::to_string(i);
  }
  MeasuredTexts texts;
  for (size_t i = stage.verdicts.size() - 20'000; i < stage.verdicts.size(); ++i)
    EXPECT_EQ(texts.of(stage, stage.verdicts[i]), "60% of its peers");
}

}  // namespace
}  // namespace muster
