// SPDX-License-Identifier: Apache-2.0
// Parameters and matrix of a stage.
#include "runner/plan/cases.h"

#include "tests/runner/plan/plan_support.h"

namespace muster::testing {
namespace {

std::vector<Case> casesOf(const std::string& lines) {
  const Plan plan = planOf(parseToml(gemmPlan(lines)));
  return plan.stages.empty() ? std::vector<Case>{} : plan.stages[0].cases;
}

std::string numbers(int count) {
  std::string list;
  for (int i = 0; i < count; ++i) list += (i > 0 ? "," : "") + std::to_string(1000 + i);
  return "[" + list + "]";
}

TEST(Cases, FillDefaultsAndRememberWhatThePlanWrote) {
  const auto cases = casesOf("[stage.params]\nsize = 4096\nmin_time = \"500ms\"\n");
  ASSERT_EQ(cases.size(), 1u);
  EXPECT_EQ(cases[0].id, "gemm");
  EXPECT_EQ(dumpJson(cases[0].params),
            R"({"size":4096,"dtype":"f32","min_time":0.5,"correctness":true,"scale":1.0})");
  EXPECT_EQ(cases[0].written, (std::set<std::string>{"size", "min_time"}));
  EXPECT_TRUE(cases[0].matrix.empty());
}

TEST(Cases, AreEveryCombinationOfTheMatrixInOrderOfItsNames) {
  const auto cases = casesOf("[stage.matrix]\nsize = [1024, 2048]\ndtype = [\"bf16\", \"f32\"]\n");
  ASSERT_EQ(cases.size(), 4u);
  EXPECT_EQ(cases[0].id, "gemm[dtype=bf16,size=1024]");
  EXPECT_EQ(cases[1].id, "gemm[dtype=bf16,size=2048]");
  EXPECT_EQ(cases[2].id, "gemm[dtype=f32,size=1024]");
  EXPECT_EQ(cases[3].id, "gemm[dtype=f32,size=2048]");
  EXPECT_EQ(cases[3].params["size"], 2048);
  EXPECT_EQ(cases[3].params["dtype"], "f32");
  EXPECT_EQ(cases[3].matrix, (Labels{{"dtype", "f32"}, {"size", "2048"}}));
}

TEST(Cases, NameQuantitiesAsThePlanWritesThemAndListsByTheirItems) {
  const Plan plan = planOf(
      parseToml("schema = 1\nname = \"p\"\nbackend = \"host\"\n[[stage]]\nname = \"m\"\nplugin = \"memory\"\n"
                "test = \"bandwidth\"\n[stage.matrix]\nbytes = [\"8 MiB\", \" 1 GiB\", 65536]\nops = "
                "[[\"copy\", \"triad\"]]\n"));
  ASSERT_EQ(plan.stages.size(), 1u);
  const auto& cases = plan.stages[0].cases;
  ASSERT_EQ(cases.size(), 3u);
  EXPECT_EQ(cases[0].id, "m[bytes=8 MiB,ops=copy,triad]");
  EXPECT_EQ(cases[1].id, "m[bytes=1 GiB,ops=copy,triad]");
  EXPECT_EQ(cases[2].id, "m[bytes=65536,ops=copy,triad]");
  EXPECT_EQ(cases[0].params["bytes"], 8.0 * 1024 * 1024);
}

TEST(Cases, TellsMistakesOfParameters) {
  const std::string place = "stage \"gemm\": ";
  expectProblems({
      {"params = 3",
       "plan.toml:8:1: " + place + "params: found 3; expected a table, for example { size = 8192 }\n"},
      {"[stage.params]\nmin_time = \"2 GiB\"",
       "plan.toml:9:1: " + place +
           "parameter \"min_time\": \"2 GiB\" is in B; expected s (ns, us, ms, s, m, h, d)\n"},
      {"[stage.params]\nmin_time = \"2h\"",
       "plan.toml:9:1: " + place +
           "parameter \"min_time\": found \"2h\"; expected a quantity in s from 0s to 1h\n"},
      {"[stage.params]\ndtype = \"bf17\"",
       "plan.toml:9:1: " + place +
           "parameter \"dtype\": found \"bf17\"; expected one of f32, bf16, fp8_e4m3; did "
           "you mean \"bf16\"?\n"},
      {"[stage.params]\nsize = 20.5",
       "plan.toml:9:1: " + place +
           "parameter \"size\": found 20.5; expected a whole number from 16 to 65536\n"},
      {"[stage.params]\ncorrectness = \"true\"",
       "plan.toml:9:1: " + place + "parameter \"correctness\": found \"true\"; expected true or false\n"},
      {"[stage.params]\nshape = 1",
       "plan.toml:9:1: " + place +
           "test \"gemm\" has no parameter \"shape\"; expected one of size, dtype, min_time, "
           "correctness, scale\n"},
  });
}

TEST(Cases, TellsMistakesOfTheMatrix) {
  const std::string place = "stage \"gemm\": ";
  expectProblems({
      {"matrix = []",
       "plan.toml:8:1: " + place +
           "matrix: found a list of 0; expected a table, for example { dtype = [\"bf16\", \"f32\"] }\n"},
      {"[stage.matrix]\ndtype = []",
       "plan.toml:9:1: " + place +
           "matrix \"dtype\": found a list of 0; expected a list of at least one value\n"},
      {"[stage.matrix]\ndtype = \"bf16\"",
       "plan.toml:9:1: " + place +
           "matrix \"dtype\": found \"bf16\"; expected a list of at least one value\n"},
      {"[stage.matrix]\ndtpye = [\"bf16\"]",
       "plan.toml:9:1: " + place + "test \"gemm\" has no parameter \"dtpye\"; did you mean \"dtype\"?\n"},
      {"[stage.matrix]\ndtype = [\"bf16\", \"bf17\", 4]",
       "plan.toml:9:18: " + place +
           "parameter \"dtype\": found \"bf17\"; expected one of f32, bf16, fp8_e4m3; did you mean "
           "\"bf16\"?\n"
           "plan.toml:9:26: " +
           place + "parameter \"dtype\": found 4; expected one of f32, bf16, fp8_e4m3\n"},
      {"params = { size = 64 }\nmatrix = { size = [64] }",
       "plan.toml:9:12: " + place + "\"size\" is in both params and matrix; keep one of them\n"},
      {"[stage.matrix]\nmin_time = [\"1s\", \"1000ms\"]",
       "plan.toml:9:19: " + place + "matrix \"min_time\": \"1000ms\" is listed twice\n"},
  });
}

TEST(Cases, AreCountedBeforeTheyAreMade) {
  const std::string left = "; expected at most the 10000 cases that are left of a plan's 10000\n";
  expectProblems({{"[stage.matrix]\nsize = " + numbers(5000) + "\ndtype = [\"bf16\", \"f32\"]", ""},
                  {"[stage.matrix]\nsize = " + numbers(10001),
                   "plan.toml:8:8: stage \"gemm\": the matrix has more than 10000 combinations" + left},
                  {"[stage.matrix]\nsize = " + numbers(9000) + "\nscale = " + numbers(9000) +
                       "\ndtype = " + numbers(9000),
                   "plan.toml:8:8: stage \"gemm\": the matrix has more than 10000 combinations" + left}});
}

TEST(Cases, OfAllStagesTogetherAreBounded) {
  const std::string second =
      "[[stage]]\nname = \"again\"\nplugin = \"compute\"\ntest = \"gemm\"\n[stage.matrix]\nsize = ";
  EXPECT_EQ(problemsOf(parseToml(
                gemmPlan("[stage.matrix]\nsize = " + numbers(6000) + "\n" + second + numbers(4001)))),
            "plan.toml:14:8: stage \"again\": the matrix has 4001 combinations; expected at most the 4000 "
            "cases that are "
            "left of a plan's 10000\n");
  const std::string third = "\n[[stage]]\nname = \"one\"\nplugin = \"compute\"\ntest = \"gemm\"\n";
  EXPECT_EQ(problemsOf(parseToml(gemmPlan("[stage.matrix]\nsize = " + numbers(10000) + third))),
            "plan.toml:10:1: stage \"one\": exceeds the limit of 10000 cases per plan\n");
}

TEST(Cases, OfMuchTextAreRefusedBeforeTheyAreMade) {
  std::string ops;
  for (int i = 0; i < 2000; ++i) ops += "\"copy\",";
  const std::string stage =
      "schema = 1\nname = \"p\"\nbackend = \"host\"\n[[stage]]\nname = \"m\"\nplugin = \"memory\"\n"
      "test = \"bandwidth\"\nparams = { ops = [" +
      ops + "] }\n[stage.matrix]\nbytes = ";
  std::string sizes;
  for (int i = 0; i < 9000; ++i) sizes += std::to_string(8192 + i) + ",";
  const PlanOutcome outcome = parseToml(stage + "[" + sizes + "]\n");
  ASSERT_EQ(outcome.diagnostics.size(), 1u);
  EXPECT_NE(outcome.diagnostics[0].mistake.message.find("bytes of parameters each are too much for one plan"),
            std::string::npos)
      << outcome.diagnostics[0].text();
}

}  // namespace
}  // namespace muster::testing
