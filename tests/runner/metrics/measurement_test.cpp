// SPDX-License-Identifier: Apache-2.0
// Summaries, labels and the JSON of measurements.
#include "runner/metrics/measurement.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace muster {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(Summarize, GivesOrderStatisticsAndMoments) {
  const Summary s = summarize({4, 1, 3, 2});
  EXPECT_EQ(s.n, 4u);
  EXPECT_DOUBLE_EQ(s.mean, 2.5);
  EXPECT_DOUBLE_EQ(s.median, 2.5);
  EXPECT_DOUBLE_EQ(s.min, 1);
  EXPECT_DOUBLE_EQ(s.max, 4);
  EXPECT_DOUBLE_EQ(s.stddev, std::sqrt(5.0 / 3));
  EXPECT_DOUBLE_EQ(s.cv, std::sqrt(5.0 / 3) / 2.5);
  EXPECT_DOUBLE_EQ(summarize({9, 1, 5}).median, 5);
}

TEST(Summarize, OneSampleHasNoSpread) {
  EXPECT_EQ(summarize({7}).stddev, 0);
  EXPECT_EQ(summarize({7}).median, 7);
}

TEST(Summarize, NothingHasNoSummary) {
  const Summary s = summarize({});
  EXPECT_EQ(s.n, 0u);
  for (const double x : {s.mean, s.median, s.min, s.max, s.stddev, s.cv}) EXPECT_TRUE(std::isnan(x));
}

TEST(Summarize, OneNanOrInfinitySpoilsTheMoments) {
  for (const double bad : {kNaN, kInf, -kInf}) {
    const Summary s = summarize({1, bad, 3});
    EXPECT_EQ(s.n, 3u);
    for (const double x : {s.mean, s.median, s.stddev, s.cv}) EXPECT_TRUE(std::isnan(x)) << bad;
  }
  EXPECT_EQ(summarize({1, kNaN, 3}).max, 3);
}

TEST(Summarize, DoesNotOverflowOrCancel) {
  EXPECT_DOUBLE_EQ(summarize({1.7e308, 1.7e308}).mean, 1.7e308);
  EXPECT_DOUBLE_EQ(summarize({1.7e308, 1.7e308}).median, 1.7e308);
  EXPECT_NEAR(summarize({1e15 + 1, 1e15 + 2, 1e15 + 3}).stddev, 1, 1e-9);
}

TEST(Summarize, SpreadAroundZeroHasNoCv) {
  EXPECT_TRUE(std::isnan(summarize({0, 0}).cv));
  EXPECT_TRUE(std::isinf(summarize({-1, 1}).cv));
}

TEST(Labels, PrintInOrder) {
  EXPECT_EQ(labelsText({{"dtype", "bf16"}, {"device", "gpu3"}}), "device=gpu3 dtype=bf16");
  EXPECT_EQ(labelsText({}), "");
}

TEST(Labels, MatchWhenEveryRequiredOneIsPresent) {
  const Labels labels = {{"device", "gpu3"}, {"dtype", "bf16"}};
  EXPECT_TRUE(labelsMatch(labels, {}));
  EXPECT_TRUE(labelsMatch(labels, {{"dtype", "bf16"}}));
  EXPECT_FALSE(labelsMatch(labels, {{"dtype", "fp8"}}));
  EXPECT_FALSE(labelsMatch(labels, {{"op", ""}}));
}

TEST(Measurement, ShowsItsMedianOrItsText) {
  Measurement m;
  m.unit = "FLOP/s";
  m.samples = {7.0e14, 7.1e14, 9e14};
  EXPECT_EQ(m.valueText(), "710 TFLOP/s");
  m.unit = "text";
  m.text = "v1\x1b";
  EXPECT_EQ(m.valueText(), "v1\\x1b");
}

Measurement fullMeasurement() {
  Measurement m;
  m.metric = "compute.gemm_throughput";
  m.unit = "FLOP/s";
  m.direction = Direction::kHigher;
  m.labels = {{"device", "gpu3"}, {"dtype", "bf16"}};
  m.samples = {0.1, 7.1e14, -0.0, kInf, -kInf};
  m.caseId = "gemm[dtype=bf16]";
  m.rank = 3;
  m.device = "gpu3";
  m.attempt = 2;
  m.repeat = 1;
  m.informational = true;
  m.peak = "flops.bf16";
  m.series = Series::kWindows;
  m.window = 5;
  return m;
}

/// Through text, as a record does it.
Measurement throughJson(const Measurement& m) {
  const auto back = measurementFromJson(*parseJson(dumpJson(toJson(m))), "m");
  EXPECT_TRUE(back.ok()) << back.error().text();
  return *back;
}

TEST(MeasurementJson, RoundTripsExactly) {
  const Measurement m = fullMeasurement();
  const Measurement back = throughJson(m);
  EXPECT_EQ(toJson(back), toJson(m));
  EXPECT_EQ(back.samples, m.samples);
  EXPECT_EQ(back.labels, m.labels);
  EXPECT_EQ(back.direction, Direction::kHigher);
  EXPECT_EQ(back.series, Series::kWindows);
  EXPECT_EQ(back.window, 5);
  EXPECT_TRUE(std::isnan(throughJson([] {
                           Measurement n = fullMeasurement();
                           n.samples = {kNaN};
                           return n;
                         }())
                             .samples[0]));
}

TEST(MeasurementJson, LeavesOutWhatIsUsual) {
  Measurement m;
  m.metric = "env.kernel";
  m.unit = "text";
  m.text = "6.1";
  m.caseId = "env";
  EXPECT_EQ(dumpJson(toJson(m)),
            R"({"metric":"env.kernel","unit":"text","case":"env","rank":0,"text":"6.1"})");
  EXPECT_EQ(toJson(throughJson(m)), toJson(m));
}

TEST(MeasurementJson, RefusesDamage) {
  const Json good = toJson(fullMeasurement());
  const auto errorWith = [&](const char* key, const Json& value) {
    Json bad = good;
    bad[key] = value;
    const auto read = measurementFromJson(bad, "m");
    return read.ok() ? std::string("read") : read.error().text();
  };
  EXPECT_EQ(errorWith("unit", "furlong"), "m.unit: \"furlong\" is not a base unit");
  EXPECT_EQ(errorWith("direction", "up"),
            "m.direction: \"up\" is not a direction; expected higher, lower or none");
  EXPECT_EQ(errorWith("series", "often"),
            "m.series: \"often\" is not a series; expected windows, runs or none");
  EXPECT_EQ(errorWith("window", -1), "m.window: is not a duration");
  EXPECT_EQ(errorWith("samples", {1, "x"}), "m.samples: item 1: found \"x\"; expected a number");
  EXPECT_EQ(errorWith("labels", {{"a", 1}}), "m.labels: \"a\": found 1; expected a text");
  EXPECT_FALSE(measurementFromJson(Json::array(), "m").ok());
  EXPECT_FALSE(measurementFromJson({{"metric", "x"}}, "m").ok());
}

}  // namespace
}  // namespace muster
