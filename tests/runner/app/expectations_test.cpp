// SPDX-License-Identifier: Apache-2.0
#include "runner/app/stage/expectations.h"

#include <gtest/gtest.h>

#include "runner/app/stage/stage_telemetry.h"
#include "runner/record/evidence_json.h"

namespace muster {
namespace {

Profile profileWith(const Labels& where) {
  Profile profile;
  profile.name = "toy";
  Expectation expectation;
  expectation.metric = "compute.gemm_throughput";
  expectation.where = where;
  profile.expectations.push_back(expectation);
  return profile;
}

StageEvidence evidenceWith(const Labels& known) {
  StageEvidence evidence;
  evidence.caseMetrics["gemm"] = {"compute.gemm_throughput"};
  evidence.caseLabels["gemm"] = known;
  return evidence;
}

TEST(ProfileExpectations, ApplyWhereTheCaseCanMeetThem) {
  EXPECT_EQ(profileExpectations(profileWith({}), evidenceWith({})).size(), 1u);
  EXPECT_EQ(profileExpectations(profileWith({{"dtype", "bf16"}}), evidenceWith({{"dtype", "bf16"}})).size(),
            1u);
  EXPECT_EQ(profileExpectations(profileWith({{"dtype", "bf16"}}), evidenceWith({{"dtype", "f32"}})).size(),
            0u);
  EXPECT_EQ(profileExpectations(profileWith({{"other", "x"}}), evidenceWith({{"dtype", "f32"}})).size(), 1u);
}

TEST(ProfileExpectations, LookAPluralUpInAListParameter) {
  EXPECT_EQ(profileExpectations(profileWith({{"op", "copy"}}), evidenceWith({{"ops", "copy,triad"}})).size(),
            1u);
  EXPECT_EQ(profileExpectations(profileWith({{"op", "read"}}), evidenceWith({{"ops", "copy,triad"}})).size(),
            0u);
  EXPECT_EQ(profileExpectations(profileWith({{"numa", "near"}}), evidenceWith({{"numa", "near,far"}})).size(),
            1u);
}

TEST(ProfileExpectations, LeaveOutMetricsThatNoCaseReports) {
  StageEvidence evidence = evidenceWith({});
  evidence.caseMetrics["gemm"] = {"memory.bandwidth"};
  EXPECT_TRUE(profileExpectations(profileWith({}), evidence).empty());
}

TEST(StandingExpectations, OfDropsOnlyWarnOnTheHost) {
  TestSpec test;
  MetricSpec metric;
  metric.name = "rate";
  Expectation drop;
  drop.kind = CheckKind::kDropMax;
  drop.limit = 0.1;
  metric.standing = {drop};
  test.metrics.push_back(metric);
  EXPECT_EQ(standingExpectations(test, "cuda").at(0).severity, Severity::kFail);
  EXPECT_EQ(standingExpectations(test, "sim").at(0).limit, 0.1);
  EXPECT_EQ(standingExpectations(test, "host").at(0).severity, Severity::kWarn);
  EXPECT_EQ(standingExpectations(test, "host").at(0).limit, 0.5);
  EXPECT_EQ(standingExpectations(test, "host").at(0).warnBand, 0) << "what has room does not warn";
}

TEST(ProfileExpectations, HoldOnlyForTheirParameters) {
  const auto chosen = [](const Labels& params, const std::vector<Labels>& cases) {
    Profile profile = profileWith({{"dtype", "bf16"}});
    profile.expectations[0].params = params;
    StageEvidence evidence = evidenceWith({});
    const auto metrics = evidence.caseMetrics.begin()->second;
    evidence.caseMetrics.clear();
    evidence.caseLabels.clear();
    for (size_t i = 0; i < cases.size(); ++i) {
      evidence.caseMetrics[std::to_string(i)] = metrics;
      evidence.caseLabels[std::to_string(i)] = cases[i];
    }
    const auto found = profileExpectations(profile, evidence);
    for (const Expectation& e : found) EXPECT_TRUE(e.params.empty()) << "a record says what its cases had";
    return found.size();
  };
  const Labels brief = {{"duration", "30.0"}, {"dtype", "bf16"}},
               lengthy = {{"duration", "600.0"}, {"dtype", "bf16"}};
  const Labels other = {{"duration", "600.0"}, {"dtype", "tf32"}};
  const Labels asked = {{"duration", "30.0"}};
  EXPECT_EQ(chosen({}, {brief, lengthy}), 1u);
  EXPECT_EQ(chosen(asked, {brief}), 1u);
  EXPECT_EQ(chosen(asked, {lengthy}), 0u);
  for (const char* same : {"30s", "30", "0.5m"}) EXPECT_EQ(chosen({{"duration", same}}, {brief}), 1u) << same;
  EXPECT_EQ(chosen({{"duration", "30 GiB"}}, {{{"duration", "30s"}, {"dtype", "bf16"}}}), 0u);
  EXPECT_EQ(chosen({{"stage", "gemm-after"}}, {brief}), 0u) << "of another stage";
  EXPECT_EQ(chosen(asked, {brief, lengthy}), 0u) << "it would judge both";
  EXPECT_EQ(chosen(asked, {brief, other}), 1u) << "another type is none of its business";
}

/// A plugin with one optional metric, and a case of it that measured nothing and ended so.
std::set<std::string> leftAfter(CaseEnd::State state) {
  TestSpec test;
  MetricSpec metric;
  metric.name = "share";
  metric.optional = true;
  test.metrics.push_back(metric);
  PluginSpec plugin;
  plugin.name = "rdma";
  StageEvidence evidence;
  evidence.caseMetrics["perftest"] = {"rdma.share"};
  evidence.ends.push_back({"perftest", 0, "", 1, state, "", ""});
  leaveOutUnmeasured(plugin, test, {"perftest"}, evidence);
  return evidence.caseMetrics["perftest"];
}

TEST(LeaveOutUnmeasured, TakesOptionalMetricsOutUnlessTheCaseIsSkippedAsAWhole) {
  EXPECT_TRUE(leftAfter(CaseEnd::State::kOk).empty());
  EXPECT_TRUE(leftAfter(CaseEnd::State::kError).empty());
  EXPECT_EQ(leftAfter(CaseEnd::State::kUnsupported).count("rdma.share"), 1u)
      << "a plan's limit on it is a skip";
}

/// What is left of the metric `share` on a node that has `rank` of a group whose rank 0 reports it for all.
size_t leftOnRank(int rank, bool optional) {
  TestSpec test;
  MetricSpec metric;
  metric.name = "share";
  metric.optional = optional;
  metric.leader = true;
  test.metrics.push_back(metric);
  PluginSpec plugin;
  plugin.name = "train";
  StageEvidence evidence;
  evidence.caseMetrics["training"] = {"train.share"};
  evidence.leaderMetrics = leaderMetricsOn(plugin, test, Scope::kCluster);
  evidence.ends.push_back({"training", rank, "", 1, CaseEnd::State::kOk, "", ""});
  leaveOutUnmeasured(plugin, test, {"training"}, evidence);
  return evidence.caseMetrics["training"].count("train.share");
}

TEST(LeaveOutUnmeasured, KeepsWhatAnotherNodeReportsForTheGroup) {
  EXPECT_EQ(leftOnRank(0, true), 0u) << "the reporting rank measured nothing";
  for (const int rank : {1, 8, 63}) EXPECT_EQ(leftOnRank(rank, true), 1u) << rank;
  for (const int rank : {0, 8}) EXPECT_EQ(leftOnRank(rank, false), 1u) << rank;
}

TEST(LoadDuring, WeighsTheSamplesOfASpanByTheirTime) {
  // Samples at 1, 2, 4 and 5 s stand for the time since the one before, the first for that since 0.5 s.
  const std::vector<double> times{1, 2, 4, 5}, shares{0.9, 0.1, 0.5, 0.7};
  const ExternalLoad all = loadDuring(times, shares, 0.5, 0, 9);
  EXPECT_NEAR(all.mean, (0.9 * 0.5 + 0.1 + 0.5 * 2 + 0.7) / 4.5, 1e-9);
  EXPECT_EQ(all.median, 0.5);
  EXPECT_EQ(all.peak, 0.9);
  const ExternalLoad part = loadDuring(times, shares, 0.5, 1.5, 2);
  EXPECT_EQ(part.mean, 0.1);
  EXPECT_EQ(part.peak, 0.1);
  EXPECT_EQ(loadDuring(times, shares, 0.5, 6, 7).peak, 0) << "nothing is known of that time";
  EXPECT_EQ(loadDuring({}, {}, 0, 0, 1).peak, 0);
}

TEST(KnownLabels, TakeMatrixValuesAsThePlanWroteThem) {
  Case c;
  c.params = {{"bytes", 8589934592.0}, {"dtype", "bf16"}, {"ops", {"copy", "triad"}}, {"check", true}};
  c.matrix = {{"bytes", "8 GiB"}};
  const Labels labels = knownLabels(c);
  EXPECT_EQ(labels.at("bytes"), "8 GiB");
  EXPECT_EQ(labels.at("dtype"), "bf16");
  EXPECT_EQ(labels.at("ops"), "copy,triad");
  EXPECT_EQ(labels.at("check"), "true");
}

TEST(EvidenceJson, RoundTrips) {
  StageEvidence evidence = evidenceWith({{"dtype", "bf16"}});
  evidence.stage = "gemm";
  evidence.allowFlaky = true;
  evidence.ends.push_back({"gemm", 2, "gpu2", 1, CaseEnd::State::kUnsupported, "no fp4", "buy one"});
  evidence.expectations = profileWith({{"dtype", "bf16"}}).expectations;
  StageRecord record;
  record.name = "gemm";
  record.evidence = evidenceToJson(evidence);
  const auto again = evidenceFromRecord(record);
  ASSERT_TRUE(again.ok()) << again.error().text();
  EXPECT_EQ(evidenceToJson(*again), record.evidence);
  EXPECT_EQ(again->ends[0].message, "no fp4");
}

TEST(EvidenceJson, KeepsWhatCausedAnErrorAndTheFaultyComponent) {
  StageEvidence evidence = evidenceWith({{"dtype", "bf16"}});
  for (const auto cause : {CaseEnd::Cause::kOwn, CaseEnd::Cause::kGroup, CaseEnd::Cause::kCancelled})
    evidence.ends.push_back({"gemm", 0, "gpu0", 1, CaseEnd::State::kError, "it broke", "", cause});
  StageRecord record;
  record.name = "gemm";
  record.evidence = evidenceToJson(evidence);
  record.group = {{"culprit", "node 1 (n1) was lost"}};
  const auto again = evidenceFromRecord(record);
  ASSERT_TRUE(again.ok()) << again.error().text();
  for (size_t i = 0; i < evidence.ends.size(); ++i) EXPECT_EQ(again->ends[i].cause, evidence.ends[i].cause);
  EXPECT_EQ(again->faulty, "node 1 (n1) was lost");
}

TEST(EvidenceJson, AnUnknownStateIsAnError) {
  StageRecord record;
  record.name = "gemm";
  record.evidence = evidenceToJson(evidenceWith({}));
  record.evidence["state"] = "fine";
  EXPECT_FALSE(evidenceFromRecord(record).ok());
}

TEST(Thinned, KeepsTheExtremes) {
  std::vector<double> values(100'000, 1.0);
  values[77'777] = 99;
  values[12'345] = -5;
  const auto kept = thinned(values, 300);
  EXPECT_LE(kept.size(), 300u);
  EXPECT_EQ(*std::max_element(kept.begin(), kept.end()), 99);
  EXPECT_EQ(*std::min_element(kept.begin(), kept.end()), -5);
  EXPECT_EQ(thinned({1, 2, 3}, 300), (std::vector<double>{1, 2, 3}));
}

TEST(Thinned, SeriesOfTheSameReadingsShareOneAxis) {
  std::vector<double> times(1000);
  for (size_t i = 0; i < times.size(); ++i) times[i] = 0.5 * static_cast<double>(i);
  const auto kept = thinnedTimes(times, 300);
  EXPECT_EQ(kept.size(), thinned(times, 300).size());
  EXPECT_EQ(kept.front(), 0);
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
  EXPECT_EQ(std::adjacent_find(kept.begin(), kept.end()), kept.end());
  EXPECT_GT(kept.back(), 495);
  EXPECT_EQ(thinnedTimes({1, 2, 3}, 300), (std::vector<double>{1, 2, 3}));
}

}  // namespace
}  // namespace muster
