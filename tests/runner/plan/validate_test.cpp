// SPDX-License-Identifier: Apache-2.0
// The top level of plans, and the keys of stages.
#include <random>

#include "tests/runner/plan/plan_support.h"

namespace muster::testing {
namespace {

TEST(Validate, TellsEveryMistakeInOneGo) {
  const PlanOutcome outcome = parseToml(R"(schema = 2
nmae = "x"
sku = ""
backend = "sim"
allow_unknown_sku = "yes"

[[stage]]
name = "gemm"
plugin = "compute"
test = "gem"
tiemout = "5m"

[[stage]]
name = "gemm"
plugin = "compute"
test = "gemm"
size = 12
scope = "node"
timeout = "0s"
repeat = 0
attempts = 99
ranks = 0
needs = ["gem", 3]
required = 1
[stage.params]
sise = 12
size = 12
[stage.matrix]
scale = [1.0, 1, 7]
[[stage.expect]]
metric = "compute.gemm_throughputs"
min = "650 TFLOP/s"

[[stage]]
name = "b r"
plugin = "broken"
test = "x"
[[stage]]
plugin = "comptue"
)");
  EXPECT_FALSE(outcome.plan.has_value());
  EXPECT_EQ(problemsOf(outcome),
            R"(plan.toml:1:1: schema: found 2; expected 1, the only version of the plan format
plan.toml:1:1: name is missing; expected a name
plan.toml:2:1: unknown key "nmae"; did you mean "name"?
plan.toml:3:1: sku: found ""; expected a name of letters, digits, '_', '-' and '.', at most 64 long
plan.toml:4:1: backend: found "sim"; expected cuda or host; select simulated devices on the command line with --simulate SCENARIO
plan.toml:5:1: allow_unknown_sku: found "yes"; expected true or false
plan.toml:10:1: stage "gemm": test: plugin "compute" has no test "gem"; did you mean "gemm"?; it has gemm, cluster_gemm
plan.toml:11:1: stage "gemm": unknown key "tiemout"; did you mean "timeout"?
plan.toml:14:1: stage "gemm": the name is already used at plan.toml:8:1; expected a unique name
plan.toml:17:1: stage "gemm": unknown key "size"; it is a parameter of compute.gemm; write it in params
plan.toml:18:1: stage "gemm": scope: compute.gemm does not run in scope "node"; expected device
plan.toml:19:1: stage "gemm": timeout: "0s" is too short; expected a duration above 0s and up to 30d, for example 5m
plan.toml:20:1: stage "gemm": repeat: found 0; expected a whole number from 1 to 1000
plan.toml:21:1: stage "gemm": attempts: found 99; expected a whole number from 1 to 10
plan.toml:22:1: stage "gemm": ranks: found 0; expected a whole number from 1 to 4096
plan.toml:23:10: stage "gemm" needs "gem", which is not a stage of this plan
plan.toml:23:17: stage "gemm": needs: found 3; expected the name of a stage
plan.toml:24:1: stage "gemm": required: found 1; expected true or false
plan.toml:26:1: stage "gemm": test "gemm" has no parameter "sise"; did you mean "size"?
plan.toml:27:1: stage "gemm": parameter "size": found 12; expected a whole number from 16 to 65536
plan.toml:29:15: stage "gemm": matrix "scale": 1 is listed twice
plan.toml:29:18: stage "gemm": parameter "scale": found 7; expected a number from 0.5 to 2
plan.toml:31:1: stage "gemm", expect 1: no plugin declares metric "compute.gemm_throughputs"; did you mean "compute.gemm_throughput"?
plan.toml:35:1: stage "b r": name: found "b r"; expected a name of letters, digits, '_', '-' and '.', at most 64 long
plan.toml:36:1: stage "b r": plugin: plugin "broken" was found but rejected: /opt/broken.so: it was built for ABI 9, expected 1
plan.toml:38:1: stage 4: name is missing; expected a name
plan.toml:38:1: stage 4: test is missing; expected a name
plan.toml:39:1: stage 4: plugin: no plugin "comptue" is installed; did you mean "compute"?; installed are compute, env, memory; --plugins DIR adds more
)");
}

TEST(Validate, ATestMayBeNamedWithItsPlugin) {
  const std::string head = "schema = 1\nname = \"p\"\nbackend = \"host\"\n[[stage]]\nname = \"s\"\n";
  const Plan plan =
      planOf(parseToml(head + "test = \"compute.gemm\"\nparams = { size = 64 }\n", {"s.size=128"}));
  ASSERT_EQ(plan.stages.size(), 1u);
  EXPECT_EQ(plan.stages[0].plugin, "compute");
  EXPECT_EQ(plan.stages[0].test, "gemm");
  EXPECT_EQ(plan.stages[0].cases[0].params["size"], 128);
  EXPECT_NE(problemsOf(parseToml(head + "test = \"compute.gem\"\n"))
                .find("plan.toml:6:1: stage \"s\": test: plugin \"compute\" has no test \"gem\"; did you "
                      "mean \"gemm\"?"),
            std::string::npos);
  EXPECT_NE(problemsOf(parseToml(head + "test = \"comput.gemm\"\n"))
                .find("plan.toml:6:1: stage \"s\": plugin: no plugin \"comput\""),
            std::string::npos);
  EXPECT_NE(problemsOf(parseToml(head + "test = \"gemm\"\n")).find("plugin is missing"), std::string::npos);
}

TEST(Validate, TakesTheDefaultsOfAShortPlan) {
  const Plan plan =
      planOf(parseToml("schema = 1\nname = \"p\"\n[[stage]]\nname = \"gemm\"\nplugin = \"compute\"\n"
                       "test = \"gemm\"\n"));
  ASSERT_EQ(plan.stages.size(), 1u);
  EXPECT_EQ(plan.sku, "auto");
  EXPECT_EQ(plan.backend, "cuda");
  EXPECT_FALSE(plan.allowUnknownSku);
  const Stage& stage = plan.stages[0];
  EXPECT_EQ(stage.scope, Scope::kDevice);
  EXPECT_EQ(stage.timeout, 600);
  EXPECT_EQ(stage.repeat, 1);
  EXPECT_EQ(stage.attempts, 1);
  EXPECT_EQ(stage.ranks, 0);
  EXPECT_TRUE(stage.required);
  EXPECT_FALSE(stage.allowFlaky);
  EXPECT_EQ(stage.at.text(), "plan.toml:3:1");
  EXPECT_EQ(plan.sha256.size(), 64u);
}

TEST(Validate, ReadsEveryKeyOfAStage) {
  const Plan plan =
      planOf(parseToml(gemmPlan("scope = \"device\"\ntimeout = \"1h30m\"\nrepeat = 3\nattempts = 2\n"
                                "ranks = 4\nrequired = false\nallow_flaky = true\n")));
  ASSERT_EQ(plan.stages.size(), 1u);
  const Stage& stage = plan.stages[0];
  EXPECT_EQ(stage.timeout, 5400);
  EXPECT_EQ(stage.repeat, 3);
  EXPECT_EQ(stage.attempts, 2);
  EXPECT_EQ(stage.ranks, 4);
  EXPECT_FALSE(stage.required);
  EXPECT_TRUE(stage.allowFlaky);
}

TEST(Validate, RefusesAPlanThatWouldAcceptAnyMachine) {
  const std::string problem =
      "plan.toml:1:1: the plan has no stage and would accept any machine; expected at least one [[stage]]\n";
  EXPECT_EQ(problemsOf(parseToml("schema = 1\nname = \"p\"\n")), problem);
  EXPECT_EQ(problemsOf(parseToml("")),
            "plan.toml:1:1: schema is missing; expected schema = 1, the version of the plan "
            "format\nplan.toml:1:1: name is missing; expected a name\n" +
                problem);
}

TEST(Validate, RefusesTimesThatNeverOrAlwaysPass) {
  const std::string expected = "; expected a duration above 0s and up to 30d, for example 5m\n";
  const std::string place = "plan.toml:8:1: stage \"gemm\": timeout: ";
  expectProblems(
      {{"timeout = 0", place + "found 0" + expected},
       {"timeout = -5", place + "found -5" + expected},
       {"timeout = nan", place + "found nan" + expected},
       {"timeout = inf", place + "found inf" + expected},
       {"timeout = \"0s\"", place + "\"0s\" is too short" + expected},
       {"timeout = \"31d\"", place + "\"31d\" is too long" + expected},
       {"timeout = true", place + "found true" + expected},
       {"timeout = \"-5m\"", place + "\"-5m\" is negative" + expected},
       {"timeout = \"-1h30m\"", place + "\"-1h30m\" is a negative duration in several units" + expected},
       {"timeout = \"soon\"", place + "\"soon\" does not start with a finite number" + expected},
       {"timeout = \"5 minuts\"", place + "\"5 minuts\" has an unknown unit \"minuts\"" + expected},
       {"timeout = \"5 GiB\"", place + "\"5 GiB\" is in B" + expected},
       {"timeout = 90", ""},
       {"timeout = \"250ms\"", ""}});
}

TEST(Validate, SaysOfAnyBadDurationOnceWhatIsExpected) {
  static const char* const kParts[] = {"-", "+",  "5",   "0", "1.5", "h",   "m",  "s",   "ms",
                                       " ", "30", "1e9", "d", "x",   "GiB", "KB", "inf", "."};
  std::mt19937 random(9);
  int refused = 0;
  for (int i = 0; i < 1500; ++i) {
    std::string duration;
    for (size_t parts = random() % 5; parts > 0; --parts) duration += kParts[random() % std::size(kParts)];
    const std::string said = problemsOf(parseToml(gemmPlan("timeout = \"" + duration + "\"\n")));
    if (said.empty()) continue;
    ++refused;
    size_t expected = 0;
    for (const char* word : {"expected ", "required "})
      for (size_t at = said.find(word); at != std::string::npos; at = said.find(word, at + 1)) ++expected;
    EXPECT_EQ(expected, 1u) << said;
    EXPECT_EQ(said.find("from 0s up"), std::string::npos) << said;
  }
  EXPECT_GT(refused, 500);
}

TEST(Validate, TakesScopeAndRanksOfTheTestWhereAStageStatesNone) {
  const auto stageOf = [](const std::string& keys) {
    return planOf(parseToml("schema = 1\nname = \"p\"\nbackend = \"host\"\n[[stage]]\nname = \"e\"\n" + keys))
        .stages.at(0);
  };
  const Stage health = stageOf("test = \"env.health\"\n");
  EXPECT_EQ(health.scope, Scope::kNode) << "the first that the test names";
  EXPECT_EQ(health.ranks, 1);
  EXPECT_EQ(stageOf("test = \"env.health\"\nranks = 2\n").ranks, 2);
  const Stage device = stageOf("test = \"env.health\"\nscope = \"device\"\n");
  EXPECT_EQ(device.scope, Scope::kDevice);
  EXPECT_EQ(device.ranks, 0) << "one for each device";
  EXPECT_EQ(stageOf("test = \"memory.bandwidth\"\n").scope, Scope::kDevice);
  EXPECT_EQ(
      problemsOf(parseToml("schema = 1\nname = \"p\"\nbackend = \"host\"\n[[stage]]\nname = \"e\"\n"
                           "plugin = \"memory\"\ntest = \"bandwidth\"\nscope = \"clutser\"\n")),
      "plan.toml:8:1: stage \"e\": scope: found \"clutser\"; expected one of device, node, cluster; did "
      "you mean "
      "\"cluster\"?\n");
}

TEST(Validate, ComparesTheTestsBackendsWithThePlans) {
  const std::string stage =
      "[[stage]]\nname = \"s\"\nplugin = \"compute\"\ntest = \"cluster_gemm\"\nscope = \"node\"\n";
  EXPECT_EQ(problemsOf(parseToml("schema = 1\nname = \"p\"\nbackend = \"host\"\n" + stage)),
            "plan.toml:7:1: stage \"s\": test: compute.cluster_gemm does not run on backend \"host\"; it "
            "runs on sim\n");
  const PlanOutcome cuda = parseToml("schema = 1\nname = \"p\"\nbackend = \"cuda\"\n" + stage);
  EXPECT_TRUE(cuda.plan.has_value()) << "a GPU plan may be meant for --simulate";
  EXPECT_EQ(problemsOf(cuda),
            "plan.toml:7:1: warning: stage \"s\": compute.cluster_gemm does not run on backend "
            "\"cuda\"; it runs on sim\n");
}

TEST(Validate, KeepsHostileNamesOffTheTerminal) {
  const std::string problems =
      problemsOf(parseToml(gemmPlan("\"\\u001b[2J\" = 1\n[[stage]]\nname = \"\\u001b[31m\"\n")));
  EXPECT_EQ(problems.find('\x1b'), std::string::npos) << problems;
  EXPECT_NE(problems.find("\\x1b[2J"), std::string::npos) << problems;
}

TEST(Validate, StopsAfterTwoHundredMistakes) {
  std::string text = "schema = 1\nname = \"p\"\n";
  for (int i = 0; i < 300; ++i) text += "unknown" + std::to_string(i) + " = 1\n";
  const PlanOutcome outcome = parseToml(text);
  ASSERT_EQ(outcome.diagnostics.size(), 201u);
  EXPECT_EQ(outcome.diagnostics.back().text(), "plan.toml: stopped after 200 errors; fix these first");
}

TEST(Validate, BoundsTheNumberOfStages) {
  std::string text = "schema = 1\nname = \"p\"\n";
  for (int i = 0; i < 1001; ++i) text += "[[stage]]\n";
  EXPECT_EQ(problemsOf(parseToml(text)), "plan.toml:3:3: stage: found 1001 stages; expected at most 1000\n");
}

}  // namespace
}  // namespace muster::testing
