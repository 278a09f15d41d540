// SPDX-License-Identifier: Apache-2.0
// Properties that hold for any evidence, however odd: the accounts balance, and nothing sick is accepted.
#include <gmock/gmock.h>

#include <limits>
#include <random>

#include "tests/runner/judge/evidence.h"

namespace muster {
namespace {
using namespace testing;

/// Random evidence from a seed: few names, so that things meet; odd figures, so that they clash.
class RandomStory {
 public:
  explicit RandomStory(unsigned seed) : random_(seed) {}

  Story make() {
    Story story;
    if (flip(5)) story.declare("second", {{"dtype", pick({"bf16", "f32"})}});
    if (flip(20)) story.evidence.caseMetrics.clear();
    for (int i = number(6); i > 0; --i)
      story.ends(number(3), static_cast<CaseEnd::State>(number(3)), "why", 1 + number(3), caseId());
    for (int i = number(8); i > 0; --i) addMeasurement(story);
    for (int i = number(5); i > 0; --i) story.expects(expectation());
    story.evidence.state = flip(15) ? static_cast<StageState>(number(4)) : StageState::kRan;
    story.context.peersAreDeferred = flip(2);
    story.context.peaks = {{"flops.bf16", 1e3}};
    return story;
  }

 private:
  bool flip(int oneIn) { return number(oneIn) == 0; }
  int number(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  std::string pick(const std::vector<std::string>& from) {
    return from[static_cast<size_t>(number(static_cast<int>(from.size())))];
  }
  std::string caseId() { return pick({"gemm", "gemm", "second", "stray"}); }
  std::string metric() {
    return pick({kThroughput, kThroughput, kDriver, "compute.wrong", "env.temperature", "x.unknown"});
  }
  std::string unit() { return pick({"FLOP/s", "FLOP/s", "count", "degC", "text", "bool", "furlong", ""}); }

  double figure() {
    const double odd[] = {0,
                          -1,
                          1,
                          100,
                          700,
                          1e300,
                          std::numeric_limits<double>::quiet_NaN(),
                          std::numeric_limits<double>::infinity()};
    return flip(2) ? 500 + number(100) : odd[number(8)];
  }

  void addMeasurement(Story& story) {
    Measurement m;
    m.metric = metric();
    m.unit = unit();
    m.direction = static_cast<Direction>(number(3));
    m.text = m.isText() ? pick({"a", "b", ""}) : "";
    m.series = static_cast<Series>(number(3));
    m.window = number(2);
    for (int i = flip(4) ? 40 : number(4); i > 0 && !m.isText(); --i) m.samples.push_back(figure());
    if (flip(3)) m.labels["dtype"] = pick({"bf16", "f32"});
    m.informational = flip(4);
    m.peak = pick({"", "flops.bf16", "none"});
    story.measures(number(3) - (flip(9) ? 1 : 0), m, 1 + number(3), caseId());
  }

  Expectation expectation() {
    Expectation e = expectingOf(metric(), unit(), static_cast<CheckKind>(number(10)), figure());
    if (flip(3)) e.where["dtype"] = pick({"bf16", "fp8"});
    if (flip(6)) e.where["device"] = "gpu1";
    e.tolerance = flip(4) ? figure() : 0.05;
    e.warnBand = flip(8) ? figure() : 0;
    e.peers = static_cast<PeerGroup>(number(2));
    e.severity = static_cast<Severity>(number(2));
    e.statistic = pick({"median", "mean", "min", "max", "median", "odd"});
    e.origin = pick({"plan", "standing", "profile x"});
    if (flip(2)) e.allowed = {pick({"a", "1", "700"})};
    e.predicate = flip(2) ? "p" : "";
    return e;
  }

  std::mt19937 random_;
};

/// A pass may rest only on finite figures that truly meet the limit.
void checkPass(const Verdict& v) {
  ASSERT_TRUE(v.expectation.has_value());
  const Expectation& e = *v.expectation;
  EXPECT_TRUE(e.kind != CheckKind::kMin || v.observed >= e.limit) << v.detail;
  EXPECT_TRUE(e.kind != CheckKind::kMax || v.observed <= e.limit) << v.detail;
  const bool figure = e.kind != CheckKind::kOneOf && e.kind != CheckKind::kEquals &&
                      e.kind != CheckKind::kContains && e.kind != CheckKind::kExcludes && e.unit != "text";
  EXPECT_TRUE(!figure || e.kind == CheckKind::kPredicate || std::isfinite(v.observed)) << v.detail;
}

TEST(Accounting, BalancesForAnyEvidence) {
  for (unsigned seed = 0; seed < 20'000; ++seed) {
    const Story story = RandomStory(seed).make();
    const StageJudgement judgement = story.judge();
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    for (const auto& v : judgement.verdicts) {
      EXPECT_FALSE(v.detail.empty()) << "seed " << seed;
      if (v.outcome == Outcome::kPass) checkPass(v);
      EXPECT_TRUE(verdictFromJson(toJson(v), "v").ok()) << "seed " << seed;
    }
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST(Accounting, AnErrorOrAFailureIsNeverAccepted) {
  for (unsigned seed = 0; seed < 20'000; ++seed) {
    DecisionInput input;
    input.accounting = RandomStory(seed).make().judge().accounting;
    const Decision decision = decide(input);
    const bool clean = input.accounting.of(Outcome::kFail) + input.accounting.of(Outcome::kError) +
                           input.accounting.of(Outcome::kFlaky) + input.accounting.requiredSkips ==
                       0;
    ASSERT_TRUE(clean || decision.exitCode == 1 || decision.exitCode == 3) << "seed " << seed;
    ASSERT_NE(decision.exitCode, 4) << "seed " << seed;
    ASSERT_EQ(decision.exitCode == 0, decision.acceptance == Acceptance::kAccepted);
  }
}

TEST(Accounting, JudgingTwiceGivesTheSame) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    const Story story = RandomStory(seed).make();
    const auto first = story.judge();
    const auto second = story.judge();
    ASSERT_EQ(first.verdicts.size(), second.verdicts.size());
    for (size_t i = 0; i < first.verdicts.size(); ++i)
      ASSERT_EQ(dumpJson(toJson(first.verdicts[i])), dumpJson(toJson(second.verdicts[i]))) << "seed " << seed;
  }
}

}  // namespace
}  // namespace muster
