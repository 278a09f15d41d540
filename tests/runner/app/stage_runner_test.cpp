// SPDX-License-Identifier: Apache-2.0
#include "runner/app/stage/stage_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(StageRunner, APredicateThatTakesTooLongIsAnErrorOfItsMeasurements) {
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
  limit.predicate = "function(m) return string.rep('a', 3000):find('.-.-.-c') == nil end";
  evidence.expectations.push_back(limit);
  JudgeContext context;
  answerPredicates(evidence, context);
  StageRecord record;
  judgeInto(record, evidence, context);
  EXPECT_EQ(record.outcome, Outcome::kError);
  ASSERT_FALSE(record.verdicts.empty());
  EXPECT_THAT(record.verdicts.front().detail, ::testing::HasSubstr("CPU")) << record.verdicts.front().detail;
}

}  // namespace
}  // namespace muster
