// SPDX-License-Identifier: Apache-2.0
#include "runner/app/stage/stage_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

/// One measurement, and a predicate about it.
StageEvidence asked(const std::string& predicate) {
  StageEvidence evidence;
  evidence.stage = "gemm";
  evidence.caseMetrics["gemm"] = {"compute.gemm_throughput"};
  evidence.ends.push_back({"gemm", 0, "gpu0", 1, CaseEnd::State::kOk, "", ""});
  Measurement value;
  value.metric = "compute.gemm_throughput";
  value.unit = "FLOP/s";
  value.caseId = "gemm";
  value.device = "gpu0";
  value.samples = {1e12};
  evidence.measurements.push_back(value);
  Expectation limit;
  limit.metric = value.metric;
  limit.kind = CheckKind::kPredicate;
  limit.predicate = predicate;
  evidence.expectations.push_back(limit);
  return evidence;
}

constexpr const char* kSlow = "function(m) return string.rep('a', 3000):find('.-.-.-c') == nil end";

TEST(StageRunner, APredicateThatTakesTooLongIsAnErrorOfItsMeasurements) {
  const StageEvidence evidence = asked(kSlow);
  JudgeContext context;
  PredicateTime time;
  answerPredicates(evidence, context, time);
  StageRecord record;
  judgeInto(record, evidence, context);
  EXPECT_EQ(record.outcome, Outcome::kError);
  ASSERT_FALSE(record.verdicts.empty());
  EXPECT_THAT(record.verdicts.front().detail, ::testing::HasSubstr("CPU")) << record.verdicts.front().detail;
}

TEST(StageRunner, PredicatesHaveTheTimeOfTheWholeRunTogether) {
  StageEvidence evidence = asked(kSlow);
  for (int i = 0; i < 1000; ++i) evidence.expectations.push_back(evidence.expectations.front());
  JudgeContext context;
  PredicateTime time;
  answerPredicates(evidence, context, time);
  EXPECT_LT(time.left, PredicateTime::kOfRun - 1);
  EXPECT_GT(time.left, PredicateTime::kOfRun - 4) << "the same predicate was asked once";
  const StageEvidence quick = asked("function(m) return true end");
  answerPredicates(quick, context, time);
  EXPECT_TRUE(context.predicateErrors[quick.expectations[0].predicate].empty());
  time.left = 0;
  answerPredicates(quick, context, time);
  EXPECT_THAT(context.predicateErrors[quick.expectations[0].predicate][0],
              ::testing::HasSubstr("all of a run have together"));
}

}  // namespace
}  // namespace muster
