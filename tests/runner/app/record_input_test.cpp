// SPDX-License-Identifier: Apache-2.0
// Plans in records are programs of strangers: what all of them may cost is bounded.
#include "runner/app/input/record_input.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <string>
#include <utility>

#include "runner/app/input/judged_again.h"
#include "runner/plan/plan_text.h"
#include "runner/record/evidence_json.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

void addRecord(fleet::FleetRecords& records, const std::string& node, const std::string& plan) {
  fleet::NodeSummary record;
  record.node = node;
  record.path = node + "/record.json";
  record.planSha256 =
      records.names->plans.textOf(records.names->plans.number("sha256 of " + plan, [&] { return plan; }));
  for (const char* stage : {"gemm", "muster:inventory"}) {
    record.stages.emplace_back();
    record.stages.back().name = records.names->text(stage);
  }
  records.nodes.push_back(record);
}

TEST(RecordInput, EvaluatesTheMostUsedPlanFirstAndNoMoreThanItsTimeAllows) {
  const std::string good = "return {schema = 1, name = \"good\", stage = {{name = \"gemm\"}}}";
  for (const double seconds : {0.0, 60.0}) {
    fleet::FleetRecords records;
    for (int i = 0; i < 5; ++i)  // however often one node has it
      addRecord(records, "n0", "return {name = \"other\", stage = {{name = \"gemm\"}}}");
    addRecord(records, "n1", good);
    addRecord(records, "n2", good);
    setAsideIncomplete(records, "", seconds);
    ASSERT_EQ(records.nodes.size(), seconds > 0 ? 7u : 2u);
    if (seconds > 0) continue;
    EXPECT_EQ(records.nodes[0].node, "n1");
    ASSERT_EQ(records.quarantined.size(), 5u);
    EXPECT_EQ(records.quarantined[0].node, "n0");
    EXPECT_THAT(records.quarantined[0].reason, HasSubstr("its plan was not evaluated"));
  }
}

/// A plan of TOML is no program, and takes its time all the same; one of too many stages is none.
TEST(RecordInput, SpendsNoMoreOnPlansThanItsTimeAllows) {
  std::string large = "schema = 1\nname = \"large\"\n";
  for (int i = 0; i < 900; ++i) large += fmt::format("[[stage]]\nname = \"s{}\"\n", i);
  fleet::FleetRecords records;
  addRecord(records, "n1", large);
  for (int i = 0; i < 3; ++i) addRecord(records, "n0", large + fmt::format("# {}\n", i));
  setAsideIncomplete(records, "", 0);
  EXPECT_THAT(records.nodes, IsEmpty());
  ASSERT_EQ(records.quarantined.size(), 4u);
  EXPECT_EQ(std::count_if(records.quarantined.begin(), records.quarantined.end(),
                          [](const fleet::Quarantined& bad) {
                            return bad.reason.find("its plan was not evaluated") != std::string::npos;
                          }),
            3);
  std::string sweeps = "schema = 1\nname = \"sweeps\"\n";
  for (int i = 0; i < 900; ++i) sweeps += fmt::format("[[stage]]\nname = \"s{}\"\nnodes = [2, 4, 8]\n", i);
  EXPECT_THAT(stagesInText(sweeps), IsEmpty());
  EXPECT_EQ(stagesInText(large).size(), 900u);
}

/// What its plan gives to a node of that number, in a run of so many, no record can leave out for itself.
TEST(RecordInput, TakesNoRecordThatLeftOutThePartWhichItsPlanGivesIt) {
  const std::string plan =
      "schema = 1\nname = \"ring\"\n[[stage]]\nname = \"walk\"\ntest = \"ring.walk\"\nscope = \"cluster\"\n"
      "nodes = [2, 4, \"all\"]\n";
  struct Part {
    StageState state;
    int nodes;
  };
  struct Case {
    const char* what;
    int rank, count;
    Part two, four, all;
    bool isRefused;
    bool required = true;
  };
  constexpr StageState kRan = StageState::kRan, kIdle = StageState::kIdle, kSkipped = StageState::kSkipped;
  const Case cases[] = {
      {"of all groups", 1, 8, {kRan, 2}, {kRan, 4}, {kRan, 8}, false},
      {"of the last", 5, 8, {kIdle, 2}, {kIdle, 4}, {kRan, 8}, false},
      {"of a small run", 1, 3, {kRan, 2}, {kSkipped, 4}, {kRan, 3}, false},
      {"of a run in which all are four", 2, 4, {kIdle, 2}, {kRan, 4}, {kSkipped, 0}, false},
      {"skipped a group of its own", 1, 8, {kSkipped, 0}, {kRan, 4}, {kRan, 8}, true},
      {"skipped the last", 5, 8, {kIdle, 2}, {kIdle, 4}, {kSkipped, 0}, true},
      {"skipped where it is idle", 5, 8, {kSkipped, 0}, {kIdle, 4}, {kRan, 8}, true},
      {"idle in a group of its own", 1, 8, {kIdle, 1}, {kRan, 4}, {kRan, 8}, true},
      {"of a smaller group", 5, 8, {kIdle, 2}, {kIdle, 4}, {kRan, 1}, true},
      {"idle in an optional group of its own", 1, 8, {kIdle, 2}, {kRan, 4}, {kRan, 8}, true, false},
      {"of a smaller optional group", 5, 8, {kIdle, 2}, {kIdle, 4}, {kRan, 1}, true, false},
      {"skipped an optional one", 5, 8, {kIdle, 2}, {kIdle, 4}, {kSkipped, 0}, false, false},
  };
  for (const Case& each : cases) {
    fleet::FleetRecords records;
    addRecord(records, "n", plan + (each.required ? "" : "required = false\n"));
    fleet::NodeSummary& node = records.nodes.back();
    node.nodeRank = each.rank;
    node.nodeCount = each.count;
    node.stages.erase(node.stages.begin());
    for (const auto& [name, part] :
         {std::pair("walk-nodes-all", each.all), {"walk-nodes-4", each.four}, {"walk-nodes-2", each.two}}) {
      fleet::StageSummary stage;
      stage.name = records.names->text(name);
      stage.scope = Scope::kCluster;
      stage.state = part.state;
      stage.groupNodes = part.nodes;
      stage.required = each.required;
      node.stages.insert(node.stages.begin(), stage);
    }
    setAsideIncomplete(records, "", 60);
    EXPECT_EQ(records.nodes.empty(), each.isRefused) << each.what;
    if (!records.quarantined.empty()) {
      EXPECT_THAT(records.quarantined[0].reason, HasSubstr("stage walk-nodes-")) << each.what;
    }
  }
}

/// A record whose limits are Lua functions that take some tenths of a second each.
Record busyRecord(int functions) {
  StageEvidence evidence;
  evidence.ends.emplace_back();
  evidence.ends.front().caseId = "gemm";
  evidence.caseMetrics["gemm"] = {"compute.gemm_throughput"};
  Expectation limit;
  limit.metric = "compute.gemm_throughput";
  limit.kind = CheckKind::kPredicate;
  limit.origin = "plan";
  for (int i = 0; i < functions; ++i) {
    limit.predicate =
        fmt::format("function(m) local x = {} for i = 1, 5000000 do x = x + i end return true end", i);
    evidence.expectations.push_back(limit);
  }
  Record record;
  record.inventory = {{"devices", Json::array()}};
  StageRecord& stage = record.stages.emplace_back();
  Measurement& measured = stage.measurements.emplace_back();
  measured.metric = "compute.gemm_throughput";
  measured.unit = "FLOP/s";
  measured.caseId = "gemm";
  measured.samples = {1};
  stage.evidence = evidenceToJson(evidence);
  return record;
}

/// What others took is no reason to refuse one that takes little.
TEST(RecordInput, BoundsTheLuaOfAllRecordsTogether) {
  PredicateTime call{PredicateTime::kOfCall};
  const auto usual = judgedAgain(busyRecord(1), "", {}, {}, call);
  ASSERT_TRUE(usual.ok()) << usual.error().text();
  EXPECT_EQ(usual->accounting.of(Outcome::kPass), 1u);
  EXPECT_EQ(call.left, PredicateTime::kOfCall);
  int functions = 8;
  while (call.left == PredicateTime::kOfCall && functions < 1000)
    ASSERT_TRUE(judgedAgain(busyRecord(functions *= 2), "", {}, {}, call).ok());
  PredicateTime none{0};
  const auto refused = judgedAgain(busyRecord(2 * functions), "", {}, {}, none);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kTimeout);
  EXPECT_THAT(refused.error().text(), HasSubstr("not evaluated: its Lua takes more than 2 s of CPU time"));
  const auto judged = judgedAgain(busyRecord(1), "", {}, {}, none);
  ASSERT_TRUE(judged.ok()) << judged.error().text();
  EXPECT_EQ(judged->accounting.of(Outcome::kPass), 1u);
}

/// Whatever its end; what the check itself takes, and a little Lua, cost nothing.
TEST(RecordInput, ChargesACheckWithTheLuaOfItsRecord) {
  const auto compute = [] {
    const std::clock_t begun = std::clock();
    while (std::clock() - begun < CLOCKS_PER_SEC / 2) {
    }
  };
  const auto lua = [&] {  // in processes of its own
    for (int i = 0; i < 8; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        compute();
        _exit(0);
      }
      waitpid(child, nullptr, 0);
    }
  };
  PredicateTime call{10};
  EXPECT_EQ(checkInChild(
                call, [&] { return compute(), std::string("done"); }, 1)
                .output,
            "done");
  EXPECT_EQ(call.left, 10);
  EXPECT_EQ(checkInChild(
                call, [&] { return lua(), std::string("done"); }, 1)
                .output,
            "done");
  EXPECT_LT(call.left, 9.5);
  const double before = call.left;
  const ChildEnd end = checkInChild(
      call, [&] { return lua(), raise(SIGKILL), std::string(); }, 1);
  EXPECT_THAT(end.problem, HasSubstr("signal 9"));
  EXPECT_LT(call.left, before - 0.5);
}

/// Every limit judges every device: a small record can ask for all memory, stage by stage.
TEST(RecordInput, BoundsTheCheckResultsOfAllStagesTogether) {
  StageEvidence evidence;
  evidence.ends.emplace_back();
  evidence.ends.front().caseId = "gemm";
  evidence.caseMetrics["gemm"] = {"compute.gemm_throughput"};
  Measurement measured;
  measured.metric = "compute.gemm_throughput";
  measured.unit = "FLOP/s";
  measured.caseId = "gemm";
  measured.samples = {1};
  StageRecord stage;
  for (int i = 0; i < 80; ++i) {
    measured.device = "gpu" + std::to_string(i);
    stage.measurements.push_back(measured);
    Expectation limit;
    limit.metric = measured.metric;
    limit.unit = measured.unit;
    limit.limit = i;
    limit.origin = "plan";
    limit.source = std::string(4000, 's');
    evidence.expectations.push_back(limit);
  }
  stage.evidence = evidenceToJson(evidence);
  Record record;
  record.inventory = {{"devices", Json::array()}};
  for (const int stages : {1, 20}) {
    record.stages.assign(static_cast<size_t>(stages), stage);
    PredicateTime call{PredicateTime::kOfCall};
    const auto again = judgedAgain(record, "", {}, {}, call);
    ASSERT_EQ(again.ok(), stages == 1) << again.error().text();
    if (!again.ok())
      EXPECT_THAT(again.error().text(), HasSubstr("take more than 256 MiB"));
    else
      EXPECT_GE(again->stages[0].verdicts.size(), 6000u);
  }
}

}  // namespace
}  // namespace muster
