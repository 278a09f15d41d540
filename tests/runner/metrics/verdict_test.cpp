// SPDX-License-Identifier: Apache-2.0
// Verdicts as JSON, outcome names and the counts.
#include "runner/metrics/verdict.h"

#include <gtest/gtest.h>

#include <cmath>

namespace muster {
namespace {

TEST(Outcome, NamesAreThoseOfTheDesign) {
  for (const char* name :
       {"fail", "error", "flaky", "warn", "unjudged", "skipped", "waived", "deferred", "elsewhere", "pass"})
    EXPECT_STREQ(outcomeName(*outcomeFromName(name)), name);
  EXPECT_FALSE(outcomeFromName("ok").ok());
  EXPECT_FALSE(outcomeFromName("").ok());
}

Verdict fullVerdict() {
  Verdict v;
  v.outcome = Outcome::kFlaky;
  v.stage = "gemm";
  v.caseId = "gemm[dtype=bf16]";
  v.metric = "compute.gemm_throughput";
  v.device = "gpu3";
  v.rank = 3;
  v.labels = {{"dtype", "bf16"}};
  v.expectation = Expectation{};
  v.expectation->metric = v.metric;
  v.observed = 4.88e14;
  v.observedText = "488 TFLOP/s";
  v.limit = 6.5e14;
  v.limitText = "at least 650 TFLOP/s";
  v.margin = -0.25;
  v.detail = "gpu3: 488 TFLOP/s";
  v.remedy = "check clocks";
  v.required = false;
  v.attempts = {{1, Outcome::kFail, 4.88e14}, {2, Outcome::kPass, std::nan("")}};
  return v;
}

TEST(VerdictJson, RoundTripsExactly) {
  const Json json = toJson(fullVerdict());
  const auto back = verdictFromJson(*parseJson(dumpJson(json)), "v");
  ASSERT_TRUE(back.ok()) << back.error().text();
  EXPECT_EQ(toJson(*back), json);
  EXPECT_EQ(back->attempts.size(), 2u);
  EXPECT_TRUE(std::isnan(back->attempts[1].observed));
  EXPECT_EQ(back->expectation->metric, "compute.gemm_throughput");
}

TEST(VerdictJson, AFigureThatIsAbsentStaysAbsentAndZeroStaysZero) {
  Verdict v;
  v.stage = "s";
  v.observed = v.limit = v.margin = std::nan("");
  EXPECT_EQ(dumpJson(toJson(v)), R"({"outcome":"error","stage":"s"})");
  EXPECT_TRUE(std::isnan(verdictFromJson(toJson(v), "v")->observed));
  v.observed = 0;
  EXPECT_EQ(verdictFromJson(toJson(v), "v")->observed, 0);
}

TEST(VerdictJson, RefusesDamage) {
  Json json = toJson(fullVerdict());
  json["outcome"] = "fine";
  EXPECT_EQ(verdictFromJson(json, "v").error().where, "v.outcome");
  json = toJson(fullVerdict());
  json["attempts"][1]["outcome"] = 7;
  EXPECT_EQ(verdictFromJson(json, "v").error().where, "v.attempts[1].outcome");
  json = toJson(fullVerdict());
  json["expectation"]["kind"] = "x";
  EXPECT_EQ(verdictFromJson(json, "v").error().where, "v.expectation.kind");
  EXPECT_FALSE(verdictFromJson("text", "v").ok());
}

TEST(Accounting, CountsEachOutcomeAndBalances) {
  Accounting accounting;
  accounting.expected = kOutcomeCount;
  for (int i = 0; i < kOutcomeCount; ++i) {
    EXPECT_FALSE(accounting.balanced());
    Verdict v;
    v.outcome = static_cast<Outcome>(i);
    accounting.add(v);
    EXPECT_EQ(accounting.of(v.outcome), 1u);
  }
  EXPECT_TRUE(accounting.balanced());
  EXPECT_EQ(accounting.requiredSkips, 1u);
}

TEST(Accounting, AnOptionalSkipDoesNotBlock) {
  Accounting accounting;
  Verdict v;
  v.outcome = Outcome::kSkipped;
  v.required = false;
  accounting.add(v);
  EXPECT_EQ(accounting.of(Outcome::kSkipped), 1u);
  EXPECT_EQ(accounting.requiredSkips, 0u);
}

}  // namespace
}  // namespace muster
