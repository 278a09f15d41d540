// SPDX-License-Identifier: Apache-2.0
// How expectations read, and their JSON.
#include "runner/metrics/expectation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

Expectation expectation(CheckKind kind, double limit, const std::string& unit) {
  Expectation e;
  e.metric = "compute.gemm_throughput";
  e.kind = kind;
  e.limit = limit;
  e.unit = unit;
  return e;
}

TEST(ExpectationText, SaysWhatIsRequired) {
  EXPECT_EQ(expectation(CheckKind::kMin, 6.5e14, "FLOP/s").text(), "min 650 TFLOP/s");
  EXPECT_EQ(expectation(CheckKind::kMax, 85, "degC").text(), "max 85 °C");
  EXPECT_EQ(expectation(CheckKind::kEquals, 8, "count").text(), "equals 8");
  EXPECT_EQ(expectation(CheckKind::kOfPeak, 0.7, "").text(), "at least 70% of the peak");
  EXPECT_EQ(expectation(CheckKind::kCvMax, 0.02, "").text(), "coefficient of variation at most 2%");
  EXPECT_EQ(expectation(CheckKind::kPredicate, 0, "").text(), "predicate of the plan");
  Expectation e = expectation(CheckKind::kBaseline, 1e9, "B/s");
  e.tolerance = 0.05;
  EXPECT_EQ(e.text(), "baseline 1 GB/s with tolerance 5%");
  e.kind = CheckKind::kWithin;
  EXPECT_EQ(e.text(), "within 5% of the node median");
  e.peers = PeerGroup::kFleet;
  EXPECT_EQ(e.text(), "within 5% of the fleet median");
  e.kind = CheckKind::kOneOf;
  e.allowed = {"a", "b"};
  EXPECT_EQ(e.text(), "one of \"a\", \"b\"");
}

TEST(ExpectationText, NamesAnUnusualStatistic) {
  Expectation e = expectation(CheckKind::kMin, 100, "W");
  e.statistic = "mean";
  EXPECT_EQ(e.text(), "mean of all samples: min 100 W");
  e.statistic = "min";
  EXPECT_EQ(e.text(), "min 100 W in every sample");
  e.kind = CheckKind::kMax;
  e.statistic = "max";
  EXPECT_EQ(e.text(), "max 100 W in every sample");
}

Expectation fullExpectation() {
  Expectation e = expectation(CheckKind::kWithin, 0.25, "FLOP/s");
  e.where = {{"dtype", "bf16"}};
  e.tolerance = 0.03;
  e.peers = PeerGroup::kFleet;
  e.allowed = {"x", "y"};
  e.predicate = "return m.mean > 1";
  e.statistic = "min";
  e.warnBand = 0.05;
  e.severity = Severity::kWarn;
  e.source = "measured 2025";
  e.remedy = "check clocks";
  e.origin = "profile h100-sxm5-80gb";
  e.at = "plan.toml:3";
  return e;
}

TEST(ExpectationJson, RoundTripsExactly) {
  const Json json = toJson(fullExpectation());
  for (const char* key :
       {"metric", "where", "kind", "limit", "unit", "tolerance", "peers", "allowed", "predicate", "statistic",
        "warn_band", "severity", "source", "remedy", "origin", "at"})
    EXPECT_TRUE(json.contains(key)) << key;
  const auto back = expectationFromJson(*parseJson(dumpJson(json)), "e");
  ASSERT_TRUE(back.ok()) << back.error().text();
  EXPECT_EQ(toJson(*back), json);
  EXPECT_EQ(back->severity, Severity::kWarn);
  EXPECT_EQ(back->peers, PeerGroup::kFleet);
}

TEST(ExpectationJson, EveryKindKeepsItsName) {
  for (const char* name : {"min", "max", "equals", "one_of", "baseline", "within", "of_peak", "cv_max",
                           "drop_max", "predicate"}) {
    const auto e = expectationFromJson({{"metric", "a.b"}, {"kind", name}}, "e");
    ASSERT_TRUE(e.ok()) << e.error().text();
    EXPECT_STREQ(checkKindName(e->kind), name);
    EXPECT_EQ(dumpJson(toJson(*e)), std::string(R"({"metric":"a.b","kind":")") + name + "\"}");
  }
}

TEST(ExpectationJson, RefusesTextsThatEveryVerdictWouldRepeat) {
  for (const char* key : {"source", "remedy", "origin", "at", "unit"}) {
    Json json = toJson(fullExpectation());
    json[key] = std::string(4097, 'A');
    EXPECT_THAT(
        expectationFromJson(json, "e").error().text(),
        ::testing::AllOf(::testing::HasSubstr(key), ::testing::HasSubstr("is longer than the 4096 bytes")));
    json[key] = std::string(4096, 'A');
    EXPECT_TRUE(expectationFromJson(json, "e").ok());
  }
}

TEST(ExpectationJson, RefusesUnknownWords) {
  const auto errorOf = [](const Json& json) {
    const auto e = expectationFromJson(json, "e");
    return e.ok() ? std::string("read") : e.error().text();
  };
  EXPECT_EQ(errorOf({{"metric", "a.b"}, {"kind", "atleast"}})
                .find("e.kind: \"atleast\" is not a kind of expectation"),
            0u);
  EXPECT_EQ(errorOf({{"metric", "a.b"}, {"kind", "min"}, {"severity", "off"}}),
            "e.severity: found \"off\"; expected fail or warn");
  EXPECT_EQ(errorOf({{"metric", "a.b"}, {"kind", "min"}, {"peers", "rack"}}),
            "e.peers: found \"rack\"; expected node or fleet");
  EXPECT_EQ(errorOf({{"kind", "min"}}), "e.metric: is missing; expected a text");
}

}  // namespace
}  // namespace muster
