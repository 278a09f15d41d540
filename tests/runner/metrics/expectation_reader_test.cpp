// SPDX-License-Identifier: Apache-2.0
// One syntax of expectations: every check, every mistake, no limit that cannot fail.
#include "runner/metrics/expectation_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

MetricSpec metric(const std::string& name, const std::string& unit, Direction direction) {
  MetricSpec spec;
  spec.name = name;
  spec.unit = unit;
  spec.direction = direction;
  return spec;
}

Catalog smallCatalog() {
  MetricSpec rate = metric("gemm_throughput", "FLOP/s", Direction::kHigher);
  rate.labels = {"dtype"};
  rate.peak = "flops.{dtype}";
  rate.series = Series::kRuns;
  TestSpec test;
  test.name = "t";
  test.metrics = {rate, metric("clock_source", "text", Direction::kNone),
                  metric("wrong", "count", Direction::kLower), metric("devices", "count", Direction::kNone),
                  metric("idle", "bool", Direction::kHigher)};
  ParamSpec duration, check, mode;
  duration.name = "duration";
  duration.type = ParamType::kQuantity;
  duration.unit = "s";
  check.name = "check";
  check.type = ParamType::kBool;
  mode.name = "mode";
  mode.type = ParamType::kString;
  mode.oneOf = {"cold", "warm"};
  test.params = {duration, check, mode};
  PluginSpec plugin;
  plugin.name = "p";
  plugin.tests = {test};
  Catalog catalog;
  catalog.plugins["p"] = plugin;
  PluginSpec collective;
  collective.name = "collective";
  collective.tests = {TestSpec{}};
  collective.tests[0].metrics = {metric("local_compute_time", "s", Direction::kLower)};
  catalog.plugins["collective"] = collective;
  return catalog;
}

struct Read {
  std::vector<Expectation> expectations;
  std::vector<std::string> complaints;  ///< "key: message"
};

Read readJson(const std::string& text, bool provenance = false, bool withCatalog = true,
              ExpectationBudget budget = {}) {
  static const Catalog catalog = smallCatalog();
  ExpectationFrame frame;
  frame.catalog = withCatalog ? &catalog : nullptr;
  frame.origin = "plan";
  frame.at = "p.toml:3";
  frame.provenance = provenance;
  Read read;
  read.expectations =
      readExpectation(*parseJson(text), frame, budget, [&](const std::string& key, const Mistake& mistake) {
        read.complaints.push_back(key + ": " + mistake.message);
      });
  return read;
}

Expectation theOne(const std::string& text) {
  Read read = readJson(text);
  EXPECT_THAT(read.complaints, IsEmpty());
  EXPECT_EQ(read.expectations.size(), 1u);
  return read.expectations.empty() ? Expectation{} : read.expectations.front();
}

void expectComplaint(const std::string& text, const std::string& part) {
  Read read = readJson(text);
  EXPECT_THAT(read.complaints, Contains(HasSubstr(part))) << text;
  EXPECT_THAT(read.expectations, IsEmpty()) << text;
}

TEST(ExpectationReader, GivesTheNewNameOfARenamedMetric) {
  expectComplaint(R"({"metric": "collective.own_time", "max": "1s"})",
                  "metric: no plugin declares metric \"collective.own_time\"; it was renamed to "
                  "\"collective.local_compute_time\"");
}

TEST(ExpectationReader, ReadsAMinimumInTheMetricsUnit) {
  Expectation e = theOne(R"({"metric":"p.gemm_throughput","where":{"dtype":"bf16"},"min":"650 TFLOP/s",
                             "severity":"warn","statistic":"min","warn_band":"5%","source":"s","remedy":"r"})");
  EXPECT_EQ(e.kind, CheckKind::kMin);
  EXPECT_DOUBLE_EQ(e.limit, 650e12);
  EXPECT_EQ(e.unit, "FLOP/s");
  EXPECT_EQ(e.where.at("dtype"), "bf16");
  EXPECT_EQ(e.severity, Severity::kWarn);
  EXPECT_EQ(e.statistic, "min");
  EXPECT_DOUBLE_EQ(e.warnBand, 0.05);
  EXPECT_EQ(e.origin, "plan");
  EXPECT_EQ(e.at, "p.toml:3");
}

TEST(ExpectationReader, RefusesTextsThatEveryVerdictWouldRepeat) {
  const auto table = [](const std::string& key, size_t bytes) {
    return fmt::format(R"({{"metric":"p.gemm_throughput","min":"650 TFLOP/s","{}":"{}"}})", key,
                       std::string(bytes, 'A'));
  };
  for (const char* key : {"source", "remedy"}) {
    theOne(table(key, 4096));
    expectComplaint(table(key, 4097), fmt::format("{0}: `{0}` is longer than 4096 bytes", key));
  }
  Json many = {{"metric", "p.clock_source"}, {"one_of", Json::array()}};
  for (int i = 0; i < 1000; ++i) many["one_of"].push_back("clock" + std::to_string(i));
  expectComplaint(dumpJson(many), "one_of: `one_of` is longer than 4096 bytes");
  // One of several values of a label counts as the only one would.
  Json wide = parseJson(table("source", 10)).value();
  wide["where"] = {{"dtype", {"bf16", std::string(4097, 'x')}}};
  expectComplaint(dumpJson(wide), "where: `where` is longer than 4096 bytes");
}

TEST(ExpectationReader, CountsEveryValueOfALabelBeforeItIsExpanded) {
  const std::string text =
      R"({"metric":"p.gemm_throughput","min":1,"max":"1 PFLOP/s","where":{"dtype":["a","b"],"device":["0","1"]}})";
  const auto read = [&](size_t expectations, size_t bytes) {
    return readJson(text, false, true, {expectations, bytes});
  };
  EXPECT_EQ(read(8, 1 << 20).expectations.size(), 8u);
  const std::string limits = "expected with all before it at most 20000 expectations and 32 MiB; shorten";
  for (const auto& [expectations, bytes] : {std::pair<size_t, size_t>{7, 1 << 20}, {8, 8 * 500}})
    EXPECT_THAT(
        read(expectations, bytes).complaints,
        ElementsAre(AllOf(HasSubstr("where.d"), HasSubstr("the limit makes 8 x "), HasSubstr(limits))));
  EXPECT_THAT(readJson(text, false, true, {0, 0, true}).complaints, IsEmpty()) << "it is told already";
  EXPECT_THAT(readJson(text, false, true, {0, 0, true}).expectations, IsEmpty());
}

TEST(ExpectationReader, ReadsBaselinePeersPeakAndStability) {
  Expectation baseline =
      theOne(R"({"metric":"p.gemm_throughput","baseline":"730 TFLOP/s","tolerance":"7%"})");
  EXPECT_EQ(baseline.kind, CheckKind::kBaseline);
  EXPECT_DOUBLE_EQ(baseline.tolerance, 0.07);
  Expectation within = theOne(R"({"metric":"p.gemm_throughput","within":0.05,"of":"fleet"})");
  EXPECT_EQ(within.kind, CheckKind::kWithin);
  EXPECT_EQ(within.peers, PeerGroup::kFleet);
  EXPECT_DOUBLE_EQ(within.tolerance, 0.05);
  EXPECT_EQ(theOne(R"({"metric":"p.gemm_throughput","of_peak":"60%"})").kind, CheckKind::kOfPeak);
  EXPECT_EQ(theOne(R"({"metric":"p.gemm_throughput","cv_max":0.02})").kind, CheckKind::kCvMax);
}

TEST(ExpectationReader, ReadsTheLargestDropOfWhatIsSampledOverTime) {
  const Expectation e = theOne(R"({"metric":"p.gemm_throughput","drop_max":"8%","warn_band":"50%"})");
  EXPECT_EQ(e.kind, CheckKind::kDropMax);
  EXPECT_DOUBLE_EQ(e.limit, 0.08);
  EXPECT_EQ(e.text(), "no drop of more than 8% at any time");
  expectComplaint(R"({"metric":"p.gemm_throughput","drop_max":"100%"})", "below 100%");
  expectComplaint(R"({"metric":"p.devices","drop_max":"8%"})", "is not sampled over time");
}

TEST(ExpectationReader, ReadsTextsCountsAndFlags) {
  EXPECT_EQ(theOne(R"({"metric":"p.clock_source","equals":"tsc"})").allowed, std::vector<std::string>{"tsc"});
  EXPECT_EQ(theOne(R"({"metric":"p.clock_source","one_of":["tsc","arch_sys_counter"]})").allowed.size(), 2u);
  EXPECT_DOUBLE_EQ(theOne(R"({"metric":"p.devices","equals":8})").limit, 8);
  EXPECT_EQ(theOne(R"({"metric":"p.devices","one_of":[4,8]})").allowed, (std::vector<std::string>{"4", "8"}));
  EXPECT_DOUBLE_EQ(theOne(R"({"metric":"p.idle","equals":true})").limit, 1);
}

TEST(ExpectationReader, MakesOneExpectationOfEachCheck) {
  Read read = readJson(R"({"metric":"p.devices","min":1,"max":8})");
  EXPECT_THAT(read.complaints, IsEmpty());
  EXPECT_EQ(read.expectations.size(), 2u);
}

TEST(ExpectationReader, NamesTheNearestMetricKeyAndLabel) {
  expectComplaint(R"({"metric":"p.gemm_troughput","min":1})", "did you mean \"p.gemm_throughput\"?");
  expectComplaint(R"({"metric":"p.devices","mim":1})",
                  "mim: unknown key \"mim\" in an expectation; did you mean \"min\"?");
  expectComplaint(R"({"metric":"p.gemm_throughput","where":{"dtpye":"bf16"},"min":1})", "where.dtpye: ");
  expectComplaint(R"({"metric":"p.devices","min":1,"severity":"wran"})", "did you mean \"warn\"?");
}

TEST(ExpectationReader, RefusesLimitsThatNeverFail) {
  expectComplaint(R"({"metric":"p.gemm_throughput","min":0})", "can never fail");
  expectComplaint(R"({"metric":"p.gemm_throughput","baseline":0,"tolerance":"5%"})", "can never fail");
  expectComplaint(R"({"metric":"p.gemm_throughput","baseline":"1 TFLOP/s","tolerance":"100%"})", "tolerance");
  expectComplaint(R"({"metric":"p.gemm_throughput","within":1,"of":"node"})", "within");
  expectComplaint(R"({"metric":"p.gemm_throughput","of_peak":0})", "of_peak");
  expectComplaint(R"({"metric":"p.gemm_throughput"})", "needs a limit");
}

TEST(ExpectationReader, RefusesAMinimumAboveTheMaximum) {
  const char* all = R"({"metric": "p.gemm_throughput", "min": "10 GFLOP/s", "max": "5 GFLOP/s"})";
  EXPECT_THAT(readJson(all).complaints,
              Contains("min: `min = \"10 GFLOP/s\"` is above `max = \"5 GFLOP/s\"`, so no value can meet "
                       "both; swap or correct them"));
  EXPECT_THAT(readJson(R"({"metric": "p.gemm_throughput", "min": 5, "max": 5})").complaints, IsEmpty());
}

TEST(ExpectationReader, SaysWhatIsNotFinite) {
  for (const auto& [value, name] : {std::pair{std::numeric_limits<double>::infinity(), "inf"},
                                    {-std::numeric_limits<double>::infinity(), "-inf"},
                                    {std::numeric_limits<double>::quiet_NaN(), "nan"}}) {
    const Catalog catalog = smallCatalog();
    ExpectationFrame frame;
    frame.catalog = &catalog;
    ExpectationBudget budget;
    std::vector<std::string> complaints;
    (void)readExpectation(
        Json{{"metric", "p.gemm_throughput"}, {"max", value}}, frame, budget,
        [&](const std::string&, const Mistake& mistake) { complaints.push_back(mistake.message); });
    EXPECT_THAT(complaints, Contains(fmt::format("`max` must be a finite number, found {}", name)));
  }
}

TEST(ExpectationReader, AllowsAMaximumOfZero) {
  EXPECT_DOUBLE_EQ(theOne(R"({"metric":"p.wrong","max":0})").limit, 0);
}

TEST(ExpectationReader, RefusesTheWrongUnitOrType) {
  expectComplaint(R"({"metric":"p.gemm_throughput","min":"5 GB/s"})", "min: ");
  expectComplaint(R"({"metric":"p.gemm_throughput","min":[1]})", "must be a number or a quantity");
  expectComplaint(R"({"metric":"p.clock_source","min":1})", "is a text");
  expectComplaint(R"({"metric":"p.clock_source","equals":1})", "is a text");
  expectComplaint(R"({"metric":"p.clock_source","one_of":[]})", "at least one value");
  expectComplaint(R"({"metric":"p.devices","of_peak":0.5})", "no theoretical peak");
  expectComplaint(R"(["p.devices"])", "an expectation is a table");
}

TEST(ExpectationReader, RefusesHalfOfAPair) {
  expectComplaint(R"({"metric":"p.gemm_throughput","baseline":1})", "needs a `tolerance`");
  expectComplaint(R"({"metric":"p.gemm_throughput","within":"3%"})", "needs `of`");
  expectComplaint(R"({"metric":"p.gemm_throughput","min":1,"tolerance":"3%"})",
                  "only valid together with `baseline`");
  expectComplaint(R"({"metric":"p.gemm_throughput","min":1,"of":"node"})",
                  "only valid together with `within`");
}

TEST(ExpectationReader, RefusesBaselineAndPeersWithoutADirection) {
  expectComplaint(R"({"metric":"p.devices","baseline":8,"tolerance":"3%"})", "not ordered");
  expectComplaint(R"({"metric":"p.devices","within":"3%","of":"node"})", "not ordered");
}

TEST(ExpectationReader, WantsSourceAndRemedyInProfiles) {
  Read read = readJson(R"({"metric":"p.devices","min":1})", true);
  EXPECT_THAT(read.complaints, Contains(HasSubstr("needs `source`")));
  EXPECT_THAT(read.complaints, Contains(HasSubstr("needs `remedy`")));
}

TEST(ExpectationReader, TakesParametersInProfilesOnly) {
  const auto with = [](const std::string& params) {
    return R"({"metric":"p.devices","min":1,"source":"s","remedy":"r","params":)" + params + "}";
  };
  const Read read = readJson(with(R"({"duration":2.5,"check":true,"mode":"cold"})"), true);
  ASSERT_THAT(read.complaints, IsEmpty());
  EXPECT_EQ(read.expectations.at(0).params,
            (Labels{{"duration", "2.5"}, {"check", "true"}, {"mode", "cold"}}));
  expectComplaint(with("{}"), "`params` belongs in a SKU profile");
  for (const auto& [params, message] : std::vector<std::pair<std::string, std::string>>{
           {"3", "must be a table of test parameters"},
           {R"({"duraton":"2s"})", "did you mean \"duration\"?"},
           {R"({"duration":"2 GiB"})", "`params.duration` must be a quantity in s"},
           {R"({"check":"maybe"})", "must be true or false"},
           {R"({"mode":"warmer"})", "warm"}})
    EXPECT_THAT(readJson(with(params), true).complaints, Contains(HasSubstr(message))) << params;
}

TEST(ExpectationReader, TellsEveryMistakeOfATable) {
  Read read = readJson(R"({"metric":"p.x","min":"x","max":"y","severity":3,"foo":1})");
  EXPECT_GE(read.complaints.size(), 3u);
}

TEST(ExpectationReader, TakesTheWrittenUnitWithoutACatalogue) {
  Read read = readJson(R"({"metric":"q.any","min":"5 GB/s"})", false, false);
  ASSERT_EQ(read.expectations.size(), 1u);
  EXPECT_EQ(read.expectations[0].unit, "B/s");
}

TEST(ExpectationReader, RefusesPredicatesOutsideLuaPlans) {
  expectComplaint(R"({"metric":"p.devices","predicate":"return true"})", "only a Lua plan");
}

}  // namespace
}  // namespace muster
