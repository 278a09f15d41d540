// SPDX-License-Identifier: Apache-2.0
// Needs between stages and the order in which they run.
#include "tests/runner/plan/plan_support.h"

namespace muster::testing {
namespace {

/// A plan of stages with their needs, four lines per stage from line 4 on.
std::string stages(const std::vector<std::pair<std::string, std::string>>& all) {
  std::string text = "schema = 1\nname = \"p\"\nbackend = \"host\"\n";
  for (const auto& [name, needs] : all)
    text += "[[stage]]\nname = \"" + name + "\"\nneeds = [" + needs +
            "]\nplugin = \"compute\"\ntest = \"gemm\"\n";
  return text;
}

std::string orderOf(const std::vector<std::pair<std::string, std::string>>& all) {
  const Plan plan = planOf(parseToml(stages(all)));
  std::string names;
  for (const size_t i : executionOrder(plan)) names += plan.stages[i].name + " ";
  return names;
}

TEST(Needs, ComeFirstAndElseTheOrderOfTheFileHolds) {
  EXPECT_EQ(orderOf({{"a", ""}, {"b", ""}, {"c", ""}}), "a b c ");
  EXPECT_EQ(orderOf({{"a", "\"c\""}, {"b", ""}, {"c", ""}}), "b c a ");
  EXPECT_EQ(orderOf({{"a", "\"c\", \"b\""}, {"b", "\"c\""}, {"c", ""}, {"d", ""}}), "c b a d ");
}

TEST(Needs, NameTheCircleTheyMake) {
  EXPECT_EQ(problemsOf(parseToml(stages({{"a", ""}, {"b", "\"c\""}, {"c", "\"a\", \"d\""}, {"d", "\"b\""}}))),
            "plan.toml:11:1: circular dependency between stages: \"b\" needs \"c\" needs \"d\" needs \"b\"; "
            "remove one of these needs\n");
  EXPECT_EQ(
      problemsOf(parseToml(stages({{"a", "\"a\""}}))),
      "plan.toml:6:1: circular dependency between stages: \"a\" needs \"a\"; remove one of these needs\n");
  // A stage behind a circle is no part of it.
  EXPECT_EQ(problemsOf(parseToml(stages({{"x", "\"y\""}, {"y", "\"z\""}, {"z", "\"y\""}}))),
            "plan.toml:11:1: circular dependency between stages: \"y\" needs \"z\" needs \"y\"; remove one "
            "of these needs\n");
}

TEST(Needs, NameStagesOfThePlanOnce) {
  EXPECT_EQ(
      problemsOf(parseToml(stages({{"warmup", ""}, {"b", "\"warmpu\", \"warmup\", \"warmup\", \"zzz\""}}))),
      "plan.toml:11:10: stage \"b\" needs \"warmpu\", which is not a stage of this plan; did you mean "
      "\"warmup\"?\n"
      "plan.toml:11:30: stage \"b\" needs \"warmup\" twice; once is enough\n"
      "plan.toml:11:40: stage \"b\" needs \"zzz\", which is not a stage of this plan\n");
  EXPECT_EQ(problemsOf(parseToml(gemmPlan("needs = [\"\"]"))),
            "plan.toml:8:10: stage \"gemm\": needs: found \"\"; expected the name of a stage\n");
  EXPECT_EQ(problemsOf(parseToml(gemmPlan("needs = \"env\""))),
            "plan.toml:8:1: stage \"gemm\": needs: found \"env\"; expected a list of stage names\n");
}

TEST(Needs, OfAThousandStagesInOneChainAreOrdered) {
  std::vector<std::pair<std::string, std::string>> chain;
  for (int i = 0; i < 1000; ++i)
    chain.emplace_back("s" + std::to_string(i), i < 999 ? "\"s" + std::to_string(i + 1) + "\"" : "");
  const std::string order = orderOf(chain);
  EXPECT_TRUE(order.starts_with("s999 s998 ")) << order.substr(0, 40);
  EXPECT_TRUE(order.ends_with(" s1 s0 "));
}

}  // namespace
}  // namespace muster::testing
