// SPDX-License-Identifier: Apache-2.0
// Expectations of a plan: their syntax, and whether the stage can ever meet or miss them.
#include <fmt/format.h>

#include <algorithm>

#include "tests/runner/plan/plan_support.h"

namespace muster::testing {
namespace {

std::vector<Expectation> expectationsOf(const std::string& lines) {
  const Plan plan = planOf(parseToml(gemmPlan(lines)));
  return plan.stages.empty() ? std::vector<Expectation>{} : plan.stages[0].expectations;
}

/// "[[stage.expect]]" on line 8, the metric on line 9, the rest from line 10 on.
std::string throughput(const std::string& rest) {
  return "[[stage.expect]]\nmetric = \"compute.gemm_throughput\"\n" + rest;
}

TEST(StageExpectations, EachCheckBecomesOne) {
  const auto all = expectationsOf(
      "[stage.matrix]\ndtype = [\"bf16\", \"f32\"]\nsize = [1024]\n[[stage.expect]]\n"
      "metric = \"compute.gemm_throughput\"\nwhere = { dtype = \"bf16\", size = 1024 }\nmin = \"650 "
      "TFLOP/s\"\n"
      "baseline = \"700 TFLOP/s\"\ntolerance = \"7%\"\nwithin = \"3%\"\nof = \"fleet\"\nof_peak = "
      "0.7\ncv_max = \"2%\"\n"
      "statistic = \"min\"\nwarn_band = 0.02\nseverity = \"warn\"\nsource = \"FACTS\"\nremedy = \"Check "
      "clocks\"\n");
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[0].kind, CheckKind::kMin);
  EXPECT_EQ(all[0].limit, 650e12);
  EXPECT_EQ(all[0].unit, "FLOP/s");
  EXPECT_EQ(all[1].kind, CheckKind::kBaseline);
  EXPECT_DOUBLE_EQ(all[1].tolerance, 0.07);
  EXPECT_EQ(all[2].kind, CheckKind::kWithin);
  EXPECT_EQ(all[2].peers, PeerGroup::kFleet);
  EXPECT_EQ(all[3].kind, CheckKind::kOfPeak);
  EXPECT_EQ(all[4].kind, CheckKind::kCvMax);
  for (const Expectation& one : all) {
    EXPECT_EQ(one.where, (Labels{{"dtype", "bf16"}, {"size", "1024"}}));
    EXPECT_EQ(one.severity, Severity::kWarn);
    EXPECT_EQ(one.statistic, "min");
    EXPECT_EQ(one.remedy, "Check clocks");
    EXPECT_EQ(one.origin, "plan");
    EXPECT_EQ(one.at, "plan.toml:11");
  }
}

TEST(StageExpectations, RefuseLimitsThatNeverFail) {
  const std::string place = "plan.toml:10:1: stage \"gemm\", expect 1: ";
  for (const std::string limit :
       {"min = 0", "min = -1.5", "min = \"0 TFLOP/s\"", "min = nan", "min = inf", "max = inf",
        "baseline = 0\ntolerance = 0.1", "of_peak = 0", "of_peak = 1.5", "cv_max = 0", "cv_max = \"-2%\"",
        "cv_max = nan", "within = 0\nof = \"node\"", "within = \"100%\"\nof = \"node\""}) {
    const PlanOutcome outcome = parseToml(gemmPlan(throughput(limit)));
    EXPECT_FALSE(outcome.plan.has_value()) << limit;
    ASSERT_EQ(outcome.diagnostics.size(), 1u) << limit << problemsOf(outcome);
    EXPECT_TRUE(outcome.diagnostics[0].text().starts_with(place)) << outcome.diagnostics[0].text();
  }
  EXPECT_EQ(expectationsOf("[[stage.expect]]\nmetric = \"compute.gemm_wrong_elements\"\nmax = 0\n").size(),
            1u)
      << "no wrong element is a limit that can fail";
}

TEST(StageExpectations, CompareUnitsWithTheMetric) {
  expectProblems({
      {throughput("min = \"650 GiB/s\""),
       "plan.toml:10:1: stage \"gemm\", expect 1: `min`: \"650 GiB/s\" is in B/s; expected FLOP/s (GFLOP/s, "
       "TFLOP/s, "
       "PFLOP/s)\n"},
      {"[[stage.expect]]\nmetric = \"compute.gemm_algorithm\"\nmin = 3",
       "plan.toml:10:1: stage \"gemm\", expect 1: metric \"compute.gemm_algorithm\" is a text: use equals or "
       "one_of in "
       "place of `min`\n"},
      {"[[stage.expect]]\nmetric = \"compute.gemm_time\"\nof_peak = 0.5",
       "plan.toml:10:1: stage \"gemm\", expect 1: metric \"compute.gemm_time\" has no theoretical peak: use "
       "min or "
       "baseline\n"},
  });
}

TEST(StageExpectations, MustBeMeasuredByTheStage) {
  expectProblems({
      {"[[stage.expect]]\nmetric = \"memory.bandwidth\"\nmin = \"3 TB/s\"",
       "plan.toml:9:1: stage \"gemm\", expect 1: metric: \"memory.bandwidth\" is not measured by "
       "compute.gemm; it "
       "measures compute.gemm_throughput, compute.gemm_wrong_elements, compute.gemm_time, "
       "compute.gemm_algorithm\n"},
      {"[[stage.expect]]\nmetric = \"gemm_throughput\"\nmin = 1",
       "plan.toml:9:1: stage \"gemm\", expect 1: no plugin declares metric \"gemm_throughput\"; did you mean "
       "\"compute.gemm_throughput\"?\n"},
  });
}

TEST(StageExpectations, MustStandForACaseOfTheStage) {
  expectProblems({
      {"[stage.matrix]\ndtype = [\"bf16\", \"f32\"]\n" +
           throughput("where = { dtype = \"fp8_e4m3\" }\nmin = 1"),
       "plan.toml:12:11: stage \"gemm\", expect 1: where: no case of this stage has dtype = \"fp8_e4m3\", so "
       "`compute.gemm_throughput` would never be judged; cases have bf16, f32\n"},
      {throughput("where = { dtpye = \"bf16\" }\nmin = 1"),
       "plan.toml:10:11: stage \"gemm\", expect 1: metric \"compute.gemm_throughput\" has no label "
       "\"dtpye\"; did you mean "
       "\"dtype\"?; it has: dtype, size, device\n"},
      // What the plan leaves open, a profile may fix: judged at run time.
      {throughput("where = { dtype = \"fp8_e4m3\" }\nmin = 1"), ""},
      {throughput("where = { device = \"gpu3\" }\nmin = 1"), ""},
  });
}

TEST(StageExpectations, WriteLabelsAsTheCaseDoes) {
  const auto all = expectationsOf(
      "[stage.matrix]\nmin_time = [\"1s\", \"250ms\"]\n[[stage.expect]]\nmetric = "
      "\"compute.gemm_wrong_elements\"\n"
      "where = { min_time = \"1000 ms\" }\nmax = 0\n");
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].where, (Labels{{"min_time", "1s"}}));
}

TEST(StageExpectations, NeedALimitAndAList) {
  expectProblems({
      {throughput(""),
       "plan.toml:8:1: stage \"gemm\", expect 1: an expectation needs a limit: min, max, equals, one_of, "
       "contains, excludes, "
       "baseline with tolerance, within, of_peak, cv_max or drop_max\n"},
      {"expect = { min = 1 }",
       "plan.toml:8:1: stage \"gemm\": expect: found a table; expected a list of tables: "
       "[[stage.expect]]\n"},
      {"expect = [3]",
       "plan.toml:8:11: stage \"gemm\": expect: found 3; expected a table, or the name of a set of "
       "[expectations]\n"},
      {throughput("predicate = \"m.cv < 1\""),
       "plan.toml:10:1: stage \"gemm\", expect 1: `predicate` is a Lua function: "
       "only a Lua plan can hold one\n"},
  });
}

TEST(StageExpectations, OfASetStandWhereTheSetStands) {
  const auto all = expectationsOf(
      "expect = [\"slow\", { set = \"slow\", max = \"2s\", remedy = \"Look again\" }]\n[expectations.slow]\n"
      "metric = [\"compute.gemm_time\", \"memory.latency\"]\nmax = \"1s\"\nsource = \"FACTS\"\n");
  ASSERT_EQ(all.size(), 2u) << "memory.latency is not measured by this stage";
  EXPECT_EQ(all[0].metric, "compute.gemm_time");
  EXPECT_EQ(all[0].limit, 1);
  EXPECT_EQ(all[0].at, "plan.toml:9");
  EXPECT_EQ(all[0].remedy, "Check clocks") << "the metric's own";
  EXPECT_EQ(all[1].limit, 2);
  EXPECT_EQ(all[1].at, "plan.toml:8");
  EXPECT_EQ(all[1].source, "FACTS");
  EXPECT_EQ(all[1].remedy, "Look again");
}

TEST(StageExpectations, OfASetHaveTheirMistakesThere) {
  expectProblems({
      {"expect = [\"slow\"]\n[expectations.slow]\nmetric = \"compute.gemm_time\"\nmax = \"1 B\"\n",
       "plan.toml:11:1: stage \"gemm\", expect 1: `max`: \"1 B\" is in B; expected s (ns, us, ms, s, m, h, "
       "d)\n"},
      {"expect = [\"slow\"]\n[expectations.slow]\nmetric = \"compute.gemm_tme\"\nmax = \"1s\"\n",
       "plan.toml:8:11: stage \"gemm\": expect: no metric of this set is measured by compute.gemm; the set "
       "is about "
       "compute.gemm_tme\n"},
      {"expect = [\"slo\"]\n[expectations.slow]\nmetric = \"compute.gemm_time\"\nmax = \"1s\"\n",
       "plan.toml:8:11: stage \"gemm\": expect: no set \"slo\" among [expectations]; did you mean "
       "\"slow\"?\n"},
  });
}

TEST(StageExpectations, OfALabelWithSeveralValuesHoldForEach) {
  const auto all = expectationsOf(
      "[stage.matrix]\ndtype = [\"bf16\", \"f32\"]\n[[stage.expect]]\nmetric = \"compute.gemm_throughput\"\n"
      "where = { dtype = [\"bf16\", \"f32\"] }\nmin = \"1 TFLOP/s\"\n");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].where, (Labels{{"dtype", "bf16"}}));
  EXPECT_EQ(all[1].where, (Labels{{"dtype", "f32"}}));
  expectProblems(
      {{throughput("where = { dtype = [] }\nmin = 1\n"),
        "plan.toml:10:11: stage \"gemm\", expect 1: label `dtype` must have at least one value\n"},
       {throughput("where = { dtype = [\"f32\", \"f32\"] }\nmin = 1\n"),
        "plan.toml:10:11: stage \"gemm\", expect 1: label `dtype` has one value twice; once is enough\n"}});
}

/// A set with a limit of 100 combinations, and stages that use it `uses` times each.
std::string manyLimits(size_t stages, size_t uses, const std::string& source, const std::string& more = "") {
  std::string labels, list;
  for (int i = 0; i < 10; ++i) labels += fmt::format("\"{}\",", i);
  for (size_t i = 0; i < uses; ++i) list += "\"w\",";
  std::string text = fmt::format(
      "schema = 1\nname = \"p\"\nbackend = \"host\"\n[expectations.w]\nmetric = "
      "\"compute.gemm_throughput\"\nmin = 1\n"
      "where = {{ device = [{0}], dtype = [{0}] }}\nsource = \"{1}\"\n",
      labels, source);
  for (size_t i = 0; i < stages; ++i)
    text += fmt::format("[[stage]]\nname = \"s{}\"\nplugin = \"compute\"\ntest = \"gemm\"\n{}expect = [{}]\n",
                        i, more, list);
  return text;
}

TEST(StageExpectations, OfAllStagesTogetherAreBounded) {
  EXPECT_EQ(problemsOf(parseToml(manyLimits(20, 10, "s"))), "");
  const std::string most =
      " bytes of expectations; expected with all before it at most 20000 expectations and 32 MiB; shorten "
      "the "
      "lists in `where`, `source` and `remedy`, or use fewer limits\n";
  const auto expectRefused = [&](const std::string& text, const std::string& place,
                                 const std::string& count) {
    const std::string problems = problemsOf(parseToml(text));
    EXPECT_TRUE(problems.starts_with("plan.toml:7:" + place + count + " x ")) << problems;
    EXPECT_TRUE(problems.ends_with(most)) << problems;
    EXPECT_EQ(std::count(problems.begin(), problems.end(), '\n'), 1) << "told once";
  };
  expectRefused(manyLimits(30, 10, "s"), "11: stage \"s20\", expect 1: the limit makes ", "100");
  expectRefused(manyLimits(100, 9, std::string(4000, 's')), "11: stage \"s7\", expect 8: the limit makes ",
                "100");
}

TEST(StageExpectations, OfAListOfNodesCountForEachOfItsStages) {
  std::string groups, labels, list;
  for (int i = 1; i <= 32; ++i) groups += fmt::format("{},", i);
  for (int i = 0; i < 100; ++i) labels += fmt::format("\"{}\",", i);
  for (int i = 0; i < 7; ++i)
    list += "{ metric = \"compute.gemm_throughput\", min = 1, where = { dtype = [" + labels + "] } },";
  const std::string problems = problemsOf(
      parseToml("schema = 1\nname = \"p\"\n[[stage]]\nname = \"walk\"\ntest = \"compute.cluster_gemm\"\n"
                "scope = \"cluster\"\nnodes = [" +
                groups + "]\nexpect = [" + list + "]\n"));
  EXPECT_NE(problems.find("stage \"walk\", expect 7: the limit makes 3200 x "), std::string::npos)
      << problems;
  EXPECT_EQ(problems.find("expect 6: the limit makes"), std::string::npos) << problems;
}

TEST(StageExpectations, OfOneStageCountEachValueOfALabel) {
  EXPECT_EQ(
      problemsOf(parseToml(manyLimits(1, 11, "s"))),
      "plan.toml:13:51: stage \"s0\", expect 11: found 1100 expectations, one for each value in `where`; "
      "expected at most 1000 in a stage\n");
}

TEST(StageExpectations, LookForWordsInTexts) {
  const auto all = expectationsOf(
      "[[stage.expect]]\nmetric = \"compute.gemm_algorithm\"\ncontains = \"cublas\"\nexcludes = [\"sim\", "
      "\"host\"]\n");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].text(), "contains \"cublas\"");
  EXPECT_EQ(all[1].text(), "contains none of \"sim\", \"host\"");
  expectProblems(
      {{throughput("contains = \"x\"\n"),
        "plan.toml:10:1: stage \"gemm\", expect 1: metric \"compute.gemm_throughput\" is not a text: use "
        "min, "
        "max, equals or one_of in place of `contains`\n"},
       {"[[stage.expect]]\nmetric = \"compute.gemm_algorithm\"\nexcludes = []\n",
        "plan.toml:10:1: stage \"gemm\", expect 1: `excludes` must have at least one text\n"},
       {"[[stage.expect]]\nmetric = \"compute.gemm_algorithm\"\ncontains = [\"a\", 3]\n",
        "plan.toml:10:1: stage \"gemm\", expect 1: `contains` holds texts that are not empty, found 3\n"}});
}

}  // namespace
}  // namespace muster::testing
