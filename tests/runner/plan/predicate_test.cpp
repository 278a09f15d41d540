// SPDX-License-Identifier: Apache-2.0
// Predicates: what they see of a measurement, what they answer, and what becomes of bad ones.
#include "runner/plan/lua/predicate.h"

#include <gtest/gtest.h>

#include <limits>

namespace muster {
namespace {

Measurement measured(const std::vector<double>& samples) {
  Measurement m;
  m.metric = "compute.gemm_throughput";
  m.unit = "FLOP/s";
  m.labels = {{"dtype", "bf16"}, {"device", "gpu0"}};
  m.samples = samples;
  return m;
}

/// The answers, or one whose error is why there is none.
std::vector<PredicateAnswer> ask(const std::string& source, const std::vector<Measurement>& measurements) {
  auto answers = evaluatePredicate(source, measurements);
  if (answers.ok()) return *answers;
  return {{false, "", answers.error().message}};
}

PredicateAnswer askOne(const std::string& source) {
  return ask(source, {measured({1, 2, 3})})[0];
}

TEST(Predicate, SeesTheWholeMeasurement) {
  const auto answer = askOne(R"(function(m)
    assert(m.metric == "compute.gemm_throughput" and m.unit == "FLOP/s" and m.text == "")
    assert(m.labels.dtype == "bf16" and m.labels.device == "gpu0" and m.labels.op == nil)
    assert(#m.samples == 3 and m.samples[2] == 2 and m.n == 3)
    assert(m.mean == 2 and m.median == 2 and m.min == 1 and m.max == 3 and m.cv == 0.5)
    return true
  end)");
  EXPECT_TRUE(answer.met) << answer.error;
  EXPECT_EQ(answer.error, "");
}

TEST(Predicate, AnswersEachMeasurementInOrder) {
  Measurement text = measured({});
  text.unit = "text";
  text.text = "tsc";
  const auto answers = ask(
      "function(m) if m.unit == 'text' then return m.text == 'tsc' end return m.cv < 0.1, 'cv ' .. m.cv end",
      {measured({1, 1, 1}), measured({1, 3}), text});
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_TRUE(answers[0].met);
  EXPECT_EQ(answers[0].message, "cv 0.0");
  EXPECT_FALSE(answers[1].met);
  EXPECT_EQ(answers[1].error, "");
  EXPECT_TRUE(answers[2].met);
  EXPECT_TRUE(ask("function(m) return true end", {}).empty());
}

TEST(Predicate, IsAnErrorUnlessItSaysTrueOrFalse) {
  EXPECT_EQ(askOne("function(m) end").error, "the predicate returned a nil; expected true or false");
  EXPECT_EQ(askOne("function(m) return 1 end").error,
            "the predicate returned a number; expected true or false");
  EXPECT_EQ(askOne("function(m) return 'true' end").error,
            "the predicate returned a string; expected true or false");
  EXPECT_EQ(askOne("function(m) return m.cvv < 1 end").error,
            "a measurement has no \"cvv\"; did you mean \"cv\"?");
  EXPECT_EQ(askOne("function(m)\n return m.labels.x < 1 end").error,
            "line 2: attempt to compare nil with number");
  EXPECT_EQ(askOne("function(m) return os.exit(0) end").error.find("\"os\" is not available"), 0u);
  EXPECT_EQ(askOne("function(m) return limit < 3 end").error, "unknown name \"limit\"");
  for (const std::string source : {"function(m) end", "function(m) return m.cvv < 1 end"})
    EXPECT_FALSE(askOne(source).met);
}

TEST(Predicate, OfOneMeasurementDoesNotDisturbTheNext) {
  const auto answers = ask("function(m) if m.n == 1 then error('odd') end return m.n == 2 end",
                           {measured({1}), measured({1, 2}), measured({1})});
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[0].error, "odd");
  EXPECT_TRUE(answers[1].met) << answers[1].error;
  EXPECT_EQ(answers[2].error, "odd");
}

TEST(Predicate, MustBeAFunction) {
  EXPECT_EQ(askOne("function(m) return").error.find("the predicate cannot be evaluated: "), 0u);
  EXPECT_EQ(askOne("3").error, "the predicate cannot be evaluated: it is not a function");
  EXPECT_EQ(askOne("nil").error, "the predicate cannot be evaluated: it is not a function");
  EXPECT_EQ(askOne("io.open").error.find("the predicate cannot be evaluated: \"io\" is not available"), 0u);
}

TEST(Predicate, IsEndedWhenItDoesNotEnd) {
  const auto loop = ask("function(m) while m.n == 1 do end return true end",
                        {measured({1, 2}), measured({1}), measured({1, 2})});
  ASSERT_EQ(loop.size(), 3u);
  EXPECT_TRUE(loop[0].met);
  EXPECT_EQ(loop[1].error, "still running after 20000000 instructions; does it contain an endless loop?");
  EXPECT_EQ(loop[2].error, "not evaluated, because of an earlier measurement: " + loop[1].error);
  EXPECT_FALSE(loop[2].met);
  EXPECT_EQ(askOne("function(m) local s = 'x' while true do s = s .. s end end").error,
            "needs more than 64 MiB of memory; a plan may use no more");
  EXPECT_EQ(askOne("function(m) return (('a'):rep(4000)):find(('.-'):rep(12) .. 'b') == nil end")
                .error.find("the predicate was still running after "),
            0u);
}

TEST(Predicate, SeesNumbersThatAreNone) {
  const auto answers = ask("function(m) return m.samples[1] ~= m.samples[1], tostring(m.max) end",
                           {measured({std::numeric_limits<double>::quiet_NaN()})});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_TRUE(answers[0].met);
}

}  // namespace
}  // namespace muster
