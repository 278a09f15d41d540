// SPDX-License-Identifier: Apache-2.0
// Clauses and their evidence: what is met, what is not, what nobody measured, on one node and on many.
#include "reports/acceptance/clause_matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <limits>

#include "reports/acceptance/fleet_clauses.h"
#include "tests/runner/record/sample/sample_record.h"
#include "tests/support/process.h"

namespace muster {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

Requirements requirementsOf(const std::string& clauses) {
  auto read = parseRequirements("schema = 1\nname = \"contract\"\n" + clauses, "r.toml");
  EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().text());
  return read.ok() ? *std::move(read) : Requirements{};
}

Requirements oneClause(const std::string& keys) {
  return requirementsOf("[[clause]]\nid = \"1\"\nrequirement = \"a rate\"\n" + keys + "\n");
}

constexpr const char* kGemm = "metrics = [\"compute.gemm_throughput\"]";
constexpr const char* kUnmeasured = "metrics = [\"compute.gemm_throughput\", \"rdma.write_bandwidth\"]";

/// Each name is looked for on each node.
TEST(Requirements, BoundsTheNamesOfAClause) {
  std::string names = "\"a\"";
  for (int i = 0; i < 1000; ++i) names += ", \"a\"";
  const auto read = parseRequirements(
      "schema = 1\n[[clause]]\nid = \"1\"\nrequirement = \"r\"\nmetrics = [" + names + "]\n", "r.toml");
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.error().text(), HasSubstr("1001 names; at most 1000"));
}

/// Anybody can put one beside a record in /tmp: it would change the verdict.
TEST(Requirements, OfAnotherUserInASharedDirectoryAreNotKept) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give a file to another user";
  const testing::TempDir dir;
  ASSERT_EQ(chmod(dir.path().c_str(), 01777), 0);
  const auto file = dir.write("requirements.toml", "");
  EXPECT_TRUE(isKept(file).value());
  ASSERT_EQ(chown(file.c_str(), 12345, 12345), 0);
  EXPECT_THAT(isKept(file).error().text(), HasSubstr("it belongs to another user"));
}

TEST(ClauseMatrix, ShowsTheWorstCheckResultOfAClause) {
  const Record record = testing::sickRecord();
  const Requirements requirements = oneClause(kGemm);
  const ClauseMatrix matrix = clauseMatrix(requirements, record);
  ASSERT_EQ(matrix.clauses.size(), 1U);
  const ClauseResult& result = matrix.clauses.front();
  EXPECT_THAT(result.missing, IsEmpty());
  ASSERT_NE(result.worst, nullptr);
  EXPECT_EQ(result.worst->outcome, Outcome::kFail);
  EXPECT_LT(result.met, result.results);
  EXPECT_THAT(result.stages, Contains("gemm"));
  EXPECT_THAT(matrix.gaps(), ElementsAre(HasSubstr("clause 1 is not met: fail: ")));
}

TEST(ClauseMatrix, NamesAMetricThatNothingWasMeasuredOf) {
  const Record record = testing::healthyRecord();
  const Requirements requirements = oneClause(kUnmeasured);
  EXPECT_THAT(clauseMatrix(requirements, record).gaps(),
              ElementsAre("clause 1 has no evidence: rdma.write_bandwidth"));
}

TEST(ClauseMatrix, TakesOnlyResultsOfItsStagesAndLabels) {
  const Record record = testing::healthyRecord();
  const auto gapsOf = [&](const std::string& keys) {
    const Requirements requirements = oneClause(keys);
    return clauseMatrix(requirements, record).gaps();
  };
  const std::string metric = kGemm;
  EXPECT_THAT(gapsOf("stages = [\"gemm\"]"), IsEmpty());
  EXPECT_THAT(gapsOf(metric + "\nstages = [\"gemm\"]"), IsEmpty());
  EXPECT_THAT(gapsOf(metric + "\nstages = [\"nowhere\"]"), ElementsAre(HasSubstr("no evidence")));
  EXPECT_THAT(gapsOf("stages = [\"gemm\", \"nowhere\"]"), ElementsAre(HasSubstr("no evidence: nowhere")));
  EXPECT_THAT(gapsOf(metric + "\nstages = [\"gemm\", \"nowhere\"]"),
              ElementsAre(HasSubstr("no evidence: nowhere")));
  EXPECT_THAT(gapsOf(metric + "\nwhere = { dtype = \"int4\" }"), ElementsAre(HasSubstr("no evidence")));
}

TEST(ClauseMatrix, CountsNoResultThatShowsNothing) {
  Record record = testing::healthyRecord();
  for (StageRecord& stage : record.stages)
    for (Verdict& verdict : stage.verdicts)
      if (verdict.metric == "compute.gemm_throughput") verdict.outcome = Outcome::kSkipped;
  const Requirements requirements = oneClause(kGemm);
  EXPECT_THAT(clauseMatrix(requirements, record).gaps(), ElementsAre(HasSubstr("no evidence")));
}

/// What is sampled beside a stage shows nothing of it.
TEST(ClauseMatrix, TakesNoTelemetryForAStage) {
  Record record = testing::healthyRecord();
  for (StageRecord& stage : record.stages)
    if (stage.name == "gemm")
      std::erase_if(stage.verdicts,
                    [](const Verdict& verdict) { return verdict.metric.starts_with("compute."); });
  const Requirements requirements = oneClause("stages = [\"gemm\"]");
  EXPECT_THAT(clauseMatrix(requirements, record).gaps(), ElementsAre(HasSubstr("no evidence: gemm")));
}

/// The stage `gemm`, of which gpu3 says that it does not support its case.
Record withUnsupported(const std::string& where) {
  Record record = testing::healthyRecord();
  for (StageRecord& stage : record.stages) {
    if (stage.name != "gemm") continue;
    const std::string caseId = stage.cases.front().id;
    stage.evidence["case_metrics"][caseId] = {"compute.gemm_throughput"};
    Verdict skipped;
    for (const Verdict& verdict : stage.verdicts)
      if (verdict.device == "gpu3" && verdict.metric == "compute.gemm_throughput")
        skipped.rank = verdict.rank;
    if (where == "everywhere")
      std::erase_if(stage.verdicts, [](const Verdict& verdict) {
        return verdict.device == "gpu3" && verdict.metric.starts_with("compute.");
      });
    skipped.outcome = Outcome::kSkipped;
    skipped.caseId = caseId;
    skipped.device = "gpu3";
    skipped.detail = "gpu3: no such type";
    stage.verdicts.push_back(skipped);
  }
  return record;
}

TEST(ClauseMatrix, NeedsEvidenceOfADeviceThatSaysItCannot) {
  const Record all = withUnsupported("everywhere"), other = withUnsupported("in one case");
  for (const std::string& keys : {std::string(kGemm), std::string("stages = [\"gemm\"]")}) {
    const Requirements requirements = oneClause(keys);
    EXPECT_THAT(clauseMatrix(requirements, all).gaps(), ElementsAre(HasSubstr("(gemm: gpu3: no such type)")));
    EXPECT_THAT(clauseMatrix(requirements, other).gaps(), IsEmpty()) << "another case shows it";
  }
}

TEST(ClauseMatrix, ListsStagesWithoutAClause) {
  const Record record = testing::healthyRecord();
  const Requirements requirements = oneClause("stages = [\"gemm\"]");
  const ClauseMatrix matrix = clauseMatrix(requirements, record);
  EXPECT_EQ(
      matrix.stagesWithout.size() + 1,
      static_cast<size_t>(std::count_if(record.stages.begin(), record.stages.end(), [](const StageRecord& s) {
        return !s.name.starts_with("muster:");
      })));
}

TEST(ClauseMatrix, KeepsARecordWithoutEvidenceFromBeingAccepted) {
  const Record accepted = testing::healthyRecord();
  EXPECT_EQ(underRequirements(accepted, std::nullopt).exitCode, 0);
  EXPECT_EQ(underRequirements(accepted, oneClause(kGemm)).exitCode, 0);
  const Record open = underRequirements(accepted, oneClause(kUnmeasured));
  EXPECT_EQ(open.exitCode, 3);
  EXPECT_EQ(open.acceptance, Acceptance::kIncomplete);
  EXPECT_THAT(open.reasons, Contains(HasSubstr("clause 1 has no evidence")));
  EXPECT_EQ(underRequirements(testing::sickRecord(), oneClause(kUnmeasured)).exitCode, 1)
      << "rejected stays rejected";
}

/// The healthy record with this in place of each result of the matrix product.
Record withGemm(Outcome outcome, double margin) {
  Record record = testing::healthyRecord();
  for (StageRecord& stage : record.stages)
    for (Verdict& verdict : stage.verdicts) {
      if (verdict.metric != "compute.gemm_throughput") continue;
      verdict.outcome = outcome;
      verdict.margin = margin;
    }
  return record;
}

TEST(ClauseMatrix, TakesAMissedLimitThatOnlyWarnsAsNotMet) {
  const Requirements requirements = oneClause(kGemm);
  for (const Record& missed : {withGemm(Outcome::kWarn, -0.2), withGemm(Outcome::kFlaky, 0.1),
                               withGemm(Outcome::kWarn, std::numeric_limits<double>::quiet_NaN())}) {
    const ClauseMatrix matrix = clauseMatrix(requirements, missed);
    EXPECT_EQ(matrix.clauses.front().met, 0U);
    EXPECT_GT(matrix.clauses.front().results, 0U);
    const Record shown = underRequirements(missed, requirements);
    EXPECT_EQ(shown.exitCode, 3);
    EXPECT_EQ(shown.acceptance, Acceptance::kIncomplete);
    EXPECT_THAT(shown.reasons, Contains("clause 1 is not met: " + matrix.clauses.front().text()));
  }
  const Record warned = withGemm(Outcome::kWarn, -0.2);
  EXPECT_THAT(clauseMatrix(requirements, warned).clauses.front().text(), HasSubstr("warn: 0 of "));
}

TEST(ClauseMatrix, LetsStandWhatIsMetInItsWarningBandOrWaived) {
  const Requirements requirements = oneClause(kGemm);
  const Record near = withGemm(Outcome::kWarn, 0.01), waived = withGemm(Outcome::kWaived, -0.2);
  for (const Record& record : {near, waived}) EXPECT_EQ(underRequirements(record, requirements).exitCode, 0);
  const ClauseMatrix met = clauseMatrix(requirements, near), conceded = clauseMatrix(requirements, waived);
  EXPECT_EQ(met.clauses.front().met, met.clauses.front().results);
  EXPECT_EQ(conceded.clauses.front().met, 0U) << "somebody answers for it; it is not met";
}

TEST(FleetClauses, NeedsEvidenceOfEachNode) {
  Record silent = testing::healthyRecord();
  for (StageRecord& stage : silent.stages) stage.verdicts.clear();
  FleetClauses clauses(oneClause(kGemm));
  clauses.add("n1", {testing::healthyRecord()});
  clauses.add("n2", {silent});
  clauses.add("n3", {silent, testing::sickRecord()});
  clauses.add("n4", {});
  clauses.finish();
  ASSERT_EQ(clauses.clauses().size(), 1U);
  EXPECT_EQ(clauses.clauses().front().nodes, 2U);
  EXPECT_EQ(clauses.clauses().front().worstNode, "n3");
  EXPECT_THAT(clauses.gaps(), ElementsAre("clause 1 has no evidence on 2 of 4 nodes: n2, n4",
                                          "clause 1 is not met on 1 of 4 nodes: n3"));
  EXPECT_THAT(clauses.openNodes(),
              ElementsAre(Pair("n2", "clause 1 has no evidence"), Pair("n3", "clause 1 is not met"),
                          Pair("n4", "clause 1 has no evidence")));
}

StageRecord stageNamed(const Record& record, const std::string& name) {
  return *std::find_if(record.stages.begin(), record.stages.end(),
                       [&](const StageRecord& stage) { return stage.name == name; });
}

/// A record of one of `nodes` nodes of a group whose products were a cluster stage, of which the first node
/// alone reports `shared` metrics.
Record memberOf(int nodes, int position, const std::vector<std::string>& shared,
                Outcome outcome = Outcome::kPass) {
  Record record = withGemm(outcome, outcome == Outcome::kPass ? 0.1 : -0.1);
  for (StageRecord& stage : record.stages) {
    if (stage.name != "gemm") continue;
    stage.scope = Scope::kCluster;
    stage.group = {
        {"world_size", nodes * 8}, {"first_rank", position * 8}, {"nodes", nodes}, {"culprit", ""}};
    stage.evidence["leader_metrics"] = shared;
    record.nodeRank = position;
    if (position > 0) stage.verdicts.clear();
  }
  return record;
}

TEST(FleetClauses, TakeWhatAGroupMeasuredTogetherAsEvidenceForAllOfIt) {
  const std::vector<std::string> shared = {"compute.gemm_throughput"};
  for (const std::string& keys : {std::string(kGemm), std::string("stages = [\"gemm\"]")}) {
    FleetClauses met(oneClause(keys)), missed(oneClause(keys));
    for (int i = 2; i >= 0; --i) {
      met.add("n" + std::to_string(i), {memberOf(3, i, shared)});
      missed.add("n" + std::to_string(i), {memberOf(3, i, shared, Outcome::kWarn)});
    }
    met.finish();
    missed.finish();
    EXPECT_THAT(met.openNodes(), IsEmpty());
    EXPECT_EQ(met.clauses().front().nodes, 3U);
    EXPECT_THAT(missed.gaps(), ElementsAre("clause 1 is not met on 3 of 3 nodes: n2, n1, n0"));
  }
}

TEST(FleetClauses, TakeWhatAGroupMeasuredFromItsFirstNodeAlone) {
  const std::vector<std::string> shared = {"compute.gemm_throughput"};
  Record lies = memberOf(3, 1, shared);
  for (StageRecord& stage : lies.stages) {
    if (stage.name != "gemm") continue;
    stage.group["first_rank"] = 0;
    stage.verdicts = stageNamed(memberOf(3, 0, shared, Outcome::kWarn), "gemm").verdicts;
  }
  FleetClauses clauses(oneClause(kGemm));
  clauses.add("n0", {memberOf(3, 0, shared)});
  clauses.add("n1", {lies});
  clauses.add("n2", {memberOf(3, 2, shared)});
  clauses.finish();
  EXPECT_THAT(clauses.gaps(), ElementsAre("clause 1 is not met on 1 of 3 nodes: n1"));
}

TEST(FleetClauses, AskNoNodeForWhatAGroupShowsBesideWhichItWasIdle) {
  const std::vector<std::string> shared = {"compute.gemm_throughput"};
  Record idle = memberOf(2, 2, shared);
  for (StageRecord& stage : idle.stages)
    if (stage.name == "gemm") stage.state = StageState::kIdle;
  const auto gaps = [&](const std::string& keys, const std::vector<Record>& records) {
    FleetClauses clauses(oneClause(keys));
    for (size_t i = 0; i < records.size(); ++i) clauses.add("n" + std::to_string(i), {records[i]});
    clauses.finish();
    return clauses.gaps();
  };
  const std::string ofStage = std::string(kGemm) + "\nstages = [\"gemm\"]";
  const Record first = memberOf(2, 0, shared), second = memberOf(2, 1, shared);
  EXPECT_THAT(gaps(ofStage, {idle, first, second}), IsEmpty());
  EXPECT_THAT(gaps("stages = [\"gemm\"]", {first, second, idle}), IsEmpty());
  EXPECT_THAT(gaps(ofStage, {idle, idle}), ElementsAre("clause 1 has no evidence on 2 of 2 nodes: n0, n1"));
  EXPECT_THAT(gaps(kGemm, {first, second, idle}), ElementsAre("clause 1 has no evidence on 1 of 3 nodes: n2"))
      << "the clause asks for the metric in any stage";
  EXPECT_THAT(gaps("stages = [\"gemm\", \"memory-bandwidth\"]", {first, second, idle}),
              Not(Contains(HasSubstr("n2"))));
}

TEST(FleetClauses, KeepsWhatARepeatedRecordMissed) {
  FleetClauses clauses(oneClause(kGemm));
  clauses.add("n0", {testing::healthyRecord()}, {withGemm(Outcome::kWarn, -0.1)});
  clauses.add("n1", {}, {testing::healthyRecord()});
  clauses.finish();
  EXPECT_THAT(clauses.gaps(), ElementsAre("clause 1 has no evidence on 1 of 2 nodes: n1",
                                          "clause 1 is not met on 1 of 2 nodes: n0"));
}

TEST(FleetClauses, TakeNothingFromAGroupThatEachNodeMustShowItself) {
  const std::vector<std::string> shared = {"compute.gemm_throughput"};
  const auto without = [](const std::vector<Record>& records) {
    FleetClauses clauses(oneClause(kGemm));
    for (size_t i = 0; i < records.size(); ++i) clauses.add("n" + std::to_string(i), {records[i]});
    clauses.finish();
    return clauses.clauses().front().without;
  };
  const Record first = memberOf(2, 0, shared), second = memberOf(2, 1, shared);
  EXPECT_THAT(without({first, second}), IsEmpty());
  EXPECT_THAT(without({memberOf(2, 0, {}), second}), ElementsAre("n1")) << "each rank reports this metric";
  EXPECT_THAT(without({first, memberOf(3, 1, shared)}), ElementsAre("n1")) << "of another group";
  EXPECT_THAT(without({first, second, second}), ElementsAre("n1", "n2")) << "one of them is of another group";
  Record skipped = second;
  for (StageRecord& stage : skipped.stages) stage.state = StageState::kSkipped;
  EXPECT_THAT(without({first, skipped}), ElementsAre("n1")) << "it took no part";
}

TEST(Requirements, RefusesMistakesWithTheirPlaces) {
  const auto refusal = [](const std::string& text) {
    const auto read = parseRequirements(text, "r.toml");
    return read.ok() ? "" : read.error().text();
  };
  const std::string clause = "[[clause]]\nid = \"1\"\nrequirement = \"a\"\nmetrics = [\"a.b\"]\n";
  EXPECT_EQ(refusal("schema = 1\n" + clause), "");
  EXPECT_THAT(refusal("schema = 1\n"), HasSubstr("clause"));
  EXPECT_THAT(refusal("schema = 2\n" + clause), HasSubstr("r.toml:1"));
  EXPECT_THAT(refusal("schema = 1\n" + clause + clause), HasSubstr("clause \"1\" is there twice"));
  EXPECT_THAT(refusal("schema = 1\n[[clause]]\nid = \"1\"\nrequirement = \"a\"\n"),
              HasSubstr("needs `metrics` or `stages`"));
  EXPECT_THAT(refusal("schema = 1\n" + clause + "metric = \"a\"\n"), HasSubstr("r.toml:6"));
}

}  // namespace
}  // namespace muster
