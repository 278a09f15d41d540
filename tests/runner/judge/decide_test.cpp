// SPDX-License-Identifier: Apache-2.0
// Exit codes: each one, and which goes first.
#include <gmock/gmock.h>

#include "runner/judge/judge.h"

namespace muster {
namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A node with one pass and `n` of each given outcome, balanced.
DecisionInput nodeWith(std::initializer_list<Outcome> outcomes) {
  DecisionInput input;
  Verdict v;
  v.outcome = Outcome::kPass;
  input.accounting.add(v);
  for (const Outcome outcome : outcomes) {
    v.outcome = outcome;
    input.accounting.add(v);
  }
  input.accounting.expected = input.accounting.total();
  return input;
}

void expectDecision(const DecisionInput& input, Acceptance acceptance, int exitCode) {
  const Decision decision = decide(input);
  EXPECT_STREQ(nameOf(decision.acceptance), nameOf(acceptance));
  EXPECT_EQ(decision.exitCode, exitCode);
}

TEST(Decide, AcceptsWhatPassedAndWhatBlocksNothing) {
  expectDecision(nodeWith({}), Acceptance::kAccepted, 0);
  expectDecision(nodeWith({Outcome::kWarn, Outcome::kUnjudged, Outcome::kWaived, Outcome::kDeferred,
                           Outcome::kElsewhere}),
                 Acceptance::kAccepted, 0);
  EXPECT_TRUE(decide(nodeWith({})).reasons.empty());
}

TEST(Decide, RejectsAFailure) {
  expectDecision(nodeWith({Outcome::kFail}), Acceptance::kRejected, 1);
  EXPECT_THAT(decide(nodeWith({Outcome::kFail, Outcome::kFail})).reasons,
              ElementsAre("2 requirements were not met"));
}

TEST(Decide, RejectsAFlakyUnlessThePlanAllowsIt) {
  DecisionInput input = nodeWith({Outcome::kFlaky});
  expectDecision(input, Acceptance::kRejected, 1);
  input.flakyAllowed = true;
  expectDecision(input, Acceptance::kAccepted, 0);
  EXPECT_THAT(decide(input).reasons, ElementsAre("1 was flaky, and the plan allows it"));
  input.accounting.counts[static_cast<size_t>(Outcome::kFail)] = 1;
  ++input.accounting.expected;
  expectDecision(input, Acceptance::kRejected, 1);
}

TEST(Decide, IsIncompleteWithAnError) {
  expectDecision(nodeWith({Outcome::kError}), Acceptance::kIncomplete, 3);
  EXPECT_THAT(decide(nodeWith({Outcome::kError})).reasons, ElementsAre("1 check produced no result"));
}

TEST(Decide, IsIncompleteWithARequiredSkipOnly) {
  DecisionInput input = nodeWith({Outcome::kSkipped});
  expectDecision(input, Acceptance::kIncomplete, 3);
  input.accounting.requiredSkips = 0;
  expectDecision(input, Acceptance::kAccepted, 0);
}

TEST(Decide, IsIncompleteWithAnUnjudgedUnderStrict) {
  DecisionInput input = nodeWith({Outcome::kUnjudged});
  input.strict = true;
  expectDecision(input, Acceptance::kIncomplete, 3);
  EXPECT_THAT(decide(input).reasons, ElementsAre("1 measurement has no limit (--strict)"));
}

TEST(Decide, IsIncompleteWithAnUnknownSkuUnlessAllowed) {
  DecisionInput input = nodeWith({});
  input.unknownSku = true;
  expectDecision(input, Acceptance::kIncomplete, 3);
  input.allowUnknownSku = true;
  expectDecision(input, Acceptance::kAccepted, 0);
  EXPECT_THAT(decide(input).reasons, ElementsAre(HasSubstr("the SKU is unknown and the plan allows it")));
}

TEST(Decide, NothingJudgedIsIncomplete) {
  expectDecision({}, Acceptance::kIncomplete, 3);
  for (const Outcome outcome :
       {Outcome::kUnjudged, Outcome::kSkipped, Outcome::kDeferred, Outcome::kElsewhere}) {
    DecisionInput input = nodeWith({outcome});
    input.accounting.counts[static_cast<size_t>(Outcome::kPass)] = 0;
    input.accounting.requiredSkips = 0;
    --input.accounting.expected;
    expectDecision(input, Acceptance::kIncomplete, 3);
  }
}

TEST(Decide, AnUnbalancedAccountIsAnInternalFault) {
  DecisionInput input = nodeWith({Outcome::kFail});
  ++input.accounting.expected;
  EXPECT_EQ(decide(input).exitCode, 4);
  EXPECT_THAT(decide(input).reasons, ElementsAre(HasSubstr("3 verdicts were expected and 2 given")));
  input.accounting.expected = 1;
  EXPECT_EQ(decide(input).exitCode, 4) << "one too many is as wrong as one too few";
}

TEST(Decide, NoGpuIsItsOwnOutcomeWhenAllowed) {
  DecisionInput input = nodeWith({Outcome::kSkipped});
  input.accounting.counts[static_cast<size_t>(Outcome::kPass)] = 0;
  --input.accounting.expected;
  input.unknownSku = true;
  input.noGpuSkip = true;
  expectDecision(input, Acceptance::kNoGpu, 5);
  input.noGpuSkip = false;
  expectDecision(input, Acceptance::kIncomplete, 3);
}

TEST(Decide, InterruptedGoesBeforeAllButAFailure) {
  DecisionInput input = nodeWith({Outcome::kError, Outcome::kSkipped});
  input.interrupted = true;
  input.unknownSku = true;
  ++input.accounting.expected;
  expectDecision(input, Acceptance::kInterrupted, 130);
}

TEST(Decide, AnInterruptedRunInWhichSomethingFailedIsRejected) {
  DecisionInput input = nodeWith({Outcome::kFail, Outcome::kError});
  input.interrupted = true;
  expectDecision(input, Acceptance::kRejected, 1);
  EXPECT_THAT(decide(input).reasons, ElementsAre("1 requirement was not met", "the run was interrupted",
                                                 "1 check produced no result"));
  EXPECT_TRUE(wasInterrupted(Acceptance::kRejected, decide(input).reasons));
  // Waived, or judged by other limits, it is what it was: an interrupted run.
  input = nodeWith({Outcome::kWaived});
  input.interrupted = true;
  expectDecision(input, Acceptance::kInterrupted, 130);
  EXPECT_TRUE(wasInterrupted(Acceptance::kInterrupted, {}));
  input = nodeWith({Outcome::kFlaky});
  input.interrupted = true;
  expectDecision(input, Acceptance::kRejected, 1);
  input.flakyAllowed = true;
  expectDecision(input, Acceptance::kInterrupted, 130);
  EXPECT_FALSE(wasInterrupted(Acceptance::kRejected, decide(nodeWith({Outcome::kFail})).reasons));
}

TEST(Decide, InternalGoesBeforeRejectedAndRejectedBeforeIncomplete) {
  DecisionInput input = nodeWith({Outcome::kFail, Outcome::kError, Outcome::kSkipped});
  expectDecision(input, Acceptance::kRejected, 1);
  EXPECT_THAT(decide(input).reasons, ElementsAre("1 requirement was not met", "1 check produced no result",
                                                 "1 required stage or case was skipped"));
  ++input.accounting.expected;
  EXPECT_EQ(decide(input).exitCode, 4);
}

TEST(Decide, RejectedAndIncompleteGoBeforeNoGpu) {
  DecisionInput input = nodeWith({Outcome::kFail, Outcome::kError});
  input.noGpuSkip = true;
  expectDecision(input, Acceptance::kRejected, 1);
  input = nodeWith({Outcome::kError});
  input.noGpuSkip = true;
  expectDecision(input, Acceptance::kIncomplete, 3);
}

TEST(AcceptanceNames, AreThoseOfTheRecord) {
  for (const char* name : {"accepted", "rejected", "incomplete", "interrupted", "no-gpu"})
    EXPECT_STREQ(nameOf(*fromName<Acceptance>(name)), name);
  EXPECT_FALSE(fromName<Acceptance>("fine").has_value());
}

/// Whatever else a partial run holds, and whether or not whoever counts it knows that it is one.
TEST(Decide, NeverAcceptsAPartialRun) {
  for (int i = 0; i < kOutcomeCount; ++i)
    for (const bool told : {true, false})
      for (const bool flag : {true, false}) {
        DecisionInput input = nodeWith({static_cast<Outcome>(i), Outcome::kSkipped});
        input.accounting.requiredSkips = 1;  // of kSelectionStage
        input.flakyAllowed = input.allowUnknownSku = flag;
        if (told) input.partial = "partial run";
        const Decision decision = decide(input);
        EXPECT_NE(decision.acceptance, Acceptance::kAccepted) << i;
        EXPECT_NE(decision.exitCode, 0) << i;
      }
  DecisionInput clean = nodeWith({Outcome::kSkipped});
  clean.accounting.requiredSkips = 1;
  clean.partial = "partial run";
  expectDecision(clean, Acceptance::kPartial, 3);
  EXPECT_THAT(decide(clean).reasons, ElementsAre("partial run"));
  clean.accounting.requiredSkips = 2;
  expectDecision(clean, Acceptance::kIncomplete, 3);
  DecisionInput failed = nodeWith({Outcome::kFail, Outcome::kSkipped});
  failed.accounting.requiredSkips = 1;
  failed.partial = "partial run";
  expectDecision(failed, Acceptance::kRejected, 1);
  EXPECT_THAT(decide(failed).reasons, ElementsAre("1 requirement was not met", "partial run"));
}

}  // namespace
}  // namespace muster
