// SPDX-License-Identifier: Apache-2.0
// TOML plans: where mistakes of the syntax stand.
#include "tests/runner/plan/plan_support.h"

namespace muster::testing {
namespace {

/// Line and column of the only problem.
std::string expectOneProblemAt(const std::string& text) {
  const PlanOutcome outcome = parseToml(text);
  EXPECT_FALSE(outcome.plan.has_value()) << text;
  EXPECT_EQ(outcome.diagnostics.size(), 1u) << problemsOf(outcome);
  return outcome.diagnostics.empty() ? "" : outcome.diagnostics[0].at.text();
}

TEST(TomlLoader, PointsAtASyntaxError) {
  EXPECT_EQ(expectOneProblemAt("schema = 1\nname = \n"), "plan.toml:2:8");
  EXPECT_EQ(expectOneProblemAt("schema = 1\nname = \"p\n"), "plan.toml:2:8");
  EXPECT_EQ(expectOneProblemAt("schema = 1\nschema = 1\n"), "plan.toml:2:1");
}

TEST(TomlLoader, SaysWhatIsWrongWithTheSyntax) {
  EXPECT_NE(problemsOf(parseToml("= 3\n")).find("plan.toml:1:1: not valid TOML: "), std::string::npos)
      << problemsOf(parseToml("= 3\n"));
}

TEST(TomlLoader, RefusesOddCharactersOutsideOfTexts) {
  for (const std::string odd : {"é", "。", "\u2003", "\u3000", "€", "😀", "\x1b"}) {
    EXPECT_TRUE(expectOneProblemAt("schema = 1\n" + odd + " = 1\n").starts_with("plan.toml:2:")) << odd;
    EXPECT_TRUE(expectOneProblemAt("schema = 1\n[" + odd + "]\n").starts_with("plan.toml:2:")) << odd;
    EXPECT_TRUE(expectOneProblemAt("schema = 1 " + odd + "\n").starts_with("plan.toml:1:")) << odd;
  }
  EXPECT_EQ(problemsOf(parseToml(gemmPlan("# é 😀\n"))), "");
}

TEST(TomlLoader, RefusesDatesAndDeepNesting) {
  EXPECT_EQ(expectOneProblemAt(gemmPlan("timeout = 2024-01-01\n")), "plan.toml:8:11");
  EXPECT_EQ(expectOneProblemAt(gemmPlan("[stage.params]\nx = " + std::string(5000, '[') + "\n")),
            "plan.toml:9:37");
  std::string dotted = "a";
  for (int i = 0; i < 100000; ++i) dotted += ".a";
  EXPECT_EQ(expectOneProblemAt(dotted + " = 1\n"), "plan.toml:1:1");
}

TEST(TomlLoader, ReadsAFileWithAByteOrderMark) {
  EXPECT_EQ(problemsOf(parseToml("\xEF\xBB\xBF" + gemmPlan(""))), "");
}

TEST(TomlLoader, KeepsTheOrderOfTheFileInItsMessages) {
  EXPECT_EQ(
      problemsOf(parseToml("zebra = 1\nschema = 1\napple = 1\nname = \"p\"\n[[stage]]\nname = \"gemm\"\n"
                           "plugin = \"compute\"\ntest = \"gemm\"\n")),
      "plan.toml:1:1: unknown key \"zebra\"; expected one of schema, include, name, description, sku, "
      "backend, allow_unknown_sku, network, expectations, stage\n"
      "plan.toml:3:1: unknown key \"apple\"; expected one of schema, include, name, description, sku, "
      "backend, allow_unknown_sku, network, expectations, stage\n");
}

}  // namespace
}  // namespace muster::testing
