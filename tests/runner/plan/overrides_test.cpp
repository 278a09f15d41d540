// SPDX-License-Identifier: Apache-2.0
// --set: what it may change, and what it says when it cannot.
#include "tests/runner/plan/plan_support.h"

namespace muster::testing {
namespace {

const std::string kPlan =
    gemmPlan("[stage.params]\nsize = 1024\n[stage.matrix]\ndtype = [\"bf16\", \"f32\"]\n");

TEST(Overrides, TakeThePlaceOfTheFilesValues) {
  const Plan plan = planOf(parseToml(
      kPlan, {"name=other", "sku=h100-sxm5-80gb", "backend=cuda", "gemm.size=64", "gemm.min_time=10ms",
              "gemm.correctness=false", "gemm.timeout=9s", "gemm.repeat=5", "gemm.attempts=2"}));
  EXPECT_EQ(plan.name, "other");
  EXPECT_EQ(plan.sku, "h100-sxm5-80gb");
  EXPECT_EQ(plan.backend, "cuda");
  ASSERT_EQ(plan.stages.size(), 1u);
  const Stage& stage = plan.stages[0];
  EXPECT_EQ(stage.timeout, 9);
  EXPECT_EQ(stage.repeat, 5);
  EXPECT_EQ(stage.attempts, 2);
  ASSERT_EQ(stage.cases.size(), 2u);
  EXPECT_EQ(dumpJson(stage.cases[1].params),
            R"({"size":64,"dtype":"f32","min_time":0.01,"correctness":false,"scale":1.0})");
  EXPECT_EQ(stage.cases[0].written, (std::set<std::string>{"correctness", "dtype", "min_time", "size"}));
  EXPECT_EQ(plan.overrides,
            (std::vector<std::string>{"name=other", "sku=h100-sxm5-80gb", "backend=cuda", "gemm.size=64",
                                      "gemm.min_time=10ms", "gemm.correctness=false", "gemm.timeout=9s",
                                      "gemm.repeat=5", "gemm.attempts=2"}));
}

TEST(Overrides, StateTheNetworkWhetherThePlanDoesOrNot) {
  const std::vector<std::string> more = {"network.rails=4", "network.rail_bandwidth=25 GB/s"};
  for (const std::string& own :
       {std::string(), std::string("[network]\nrails = 8\nrail_bandwidth = \"50 GB/s\"\n")}) {
    const Plan plan = planOf(parseToml(kPlan + own, more));
    EXPECT_EQ(plan.network.rails, 4);
    EXPECT_EQ(plan.network.railBandwidth, 25e9);
    EXPECT_EQ(plan.overrides, more);
  }
  const Plan stated = planOf(parseToml("network = { rail_bandwidth = \"12.5 GB/s\" }\n" + kPlan));
  EXPECT_EQ(stated.network.rails, 0);
  EXPECT_EQ(stated.network.railBandwidth, 12.5e9);
  EXPECT_EQ(problemsOf(parseToml(kPlan, {"network.rails=0", "network.rail_bandwidth=fast"})),
            "--set network.rails=0: network: rails: found 0; expected a whole number from 1 to 64\n"
            "--set network.rail_bandwidth=fast: network: rail_bandwidth: found \"fast\"; expected the rate "
            "of one NIC, "
            "one way, such as \"50 GB/s\" (400 Gb/s)\n");
  EXPECT_NE(problemsOf(parseToml("network = { rials = 8 }\n" + kPlan)).find("did you mean \"rails\"?"),
            std::string::npos);
}

TEST(Overrides, FixAParameterOfTheMatrix) {
  const Plan plan = planOf(parseToml(kPlan, {"gemm.dtype=fp8_e4m3"}));
  ASSERT_EQ(plan.stages.size(), 1u);
  ASSERT_EQ(plan.stages[0].cases.size(), 1u);
  EXPECT_EQ(plan.stages[0].cases[0].id, "gemm");
  EXPECT_EQ(plan.stages[0].cases[0].params["dtype"], "fp8_e4m3");
}

TEST(Overrides, ReadListsAndWholeTextsWithEqualsSigns) {
  const Plan plan =
      planOf(parseToml("schema = 1\nname = \"p\"\nbackend = \"host\"\n[[stage]]\nname = \"mem.one\"\n"
                       "plugin = \"memory\"\ntest = \"bandwidth\"\n",
                       {"mem.one.ops=copy, triad"}));
  ASSERT_EQ(plan.stages.size(), 1u);
  EXPECT_EQ(dumpJson(plan.stages[0].cases[0].params["ops"]), R"(["copy","triad"])");
  auto parsed = parseOverride("stage.key=a=b");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->key, "stage.key");
  EXPECT_EQ(parsed->value, "a=b");
}

TEST(Overrides, LetTheLaterOfTwoWin) {
  const Plan plan = planOf(parseToml(kPlan, {"gemm.size=64", "gemm.size=128"}));
  ASSERT_EQ(plan.stages.size(), 1u);
  EXPECT_EQ(plan.stages[0].cases[0].params["size"], 128);
}

TEST(Overrides, WorkOnLuaPlansToo) {
  const Plan plan =
      planOf(parseLua("return plan{ schema = 1, name = 'p', backend = 'host',\n"
                      "  stage{ name = 'gemm', plugin = 'compute', test = 'gemm' } }",
                      {"gemm.size=64"}));
  ASSERT_EQ(plan.stages.size(), 1u);
  EXPECT_EQ(plan.stages[0].cases[0].params["size"], 64);
}

TEST(Overrides, TellTheirMistakesAllAtOnce) {
  const PlanOutcome outcome = parseToml(kPlan, {"gemm.foo=1", "gem.size=2", "bakend=host", "gemm.repeat=x",
                                                "gemm.size=12", "gemm.sise=1", "backend=sim"});
  EXPECT_FALSE(outcome.plan.has_value());
  EXPECT_EQ(
      problemsOf(outcome),
      "--set gemm.foo=1: stage \"gemm\" (test \"gemm\") has no parameter \"foo\"; expected one of timeout, "
      "repeat, "
      "attempts, size, dtype, min_time, correctness, scale\n"
      "--set gem.size=2: the plan has no stage \"gem\"; did you mean \"gemm\"?\n"
      "--set bakend=host: unknown key \"bakend\"; did you mean \"backend\"?; expected name, sku, backend, "
      "network.rails, network.rail_bandwidth, or STAGE.PARAMETER\n"
      "--set gemm.sise=1: stage \"gemm\" (test \"gemm\") has no parameter \"sise\"; did you mean \"size\"?\n"
      "--set backend=sim: backend: found \"sim\"; expected cuda or host; select simulated devices on the "
      "command line with --simulate SCENARIO\n"
      "--set gemm.repeat=x: stage \"gemm\": repeat: found \"x\"; expected a whole number from 1 to 1000\n"
      "--set gemm.size=12: stage \"gemm\": parameter \"size\": found 12; expected a whole number from 16 to "
      "65536\n");
}

TEST(Overrides, NeedAKeyAndAValue) {
  for (const std::string argument : {"", "gemm.size", "=3", " = 3"}) {
    const auto parsed = parseOverride(argument);
    ASSERT_FALSE(parsed.ok()) << argument;
    EXPECT_EQ(parsed.error().text(),
              "--set: found \"" + argument +
                  "\"; expected STAGE.PARAMETER=VALUE, for example gemm.size=4096, or sku=NAME");
  }
}

TEST(Overrides, LeaveADamagedPlanToValidation) {
  EXPECT_NE(problemsOf(parseToml("stage = 3\n", {"gemm.size=1"})).find("stage: found 3"), std::string::npos);
  EXPECT_NE(problemsOf(parseToml(gemmPlan("params = 3"), {"gemm.size=64"})).find("params: found 3"),
            std::string::npos);
}

}  // namespace
}  // namespace muster::testing
