// SPDX-License-Identifier: Apache-2.0
// Waivers: what a file must say, which failures it covers, and what is said of those that cover none.
#include "runner/judge/waivers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

namespace muster::testing {
namespace {

using ::testing::HasSubstr;

constexpr double kNow = 1795219200;  // 2026-11-21 00:00 UTC

const std::string kHead = "schema = 1\n\n";

std::string waiver(const std::string& more = "", const std::string& expires = "2026-12-31") {
  return "[[waiver]]\nstage = \"gemm\"\nmetric = \"compute.gemm_throughput\"\nnode = \"n17\"\n"
         "reason = \"riser on order\"\napprover = \"J. Doe\"\nexpires = \"" +
         expires + "\"\n" + more;
}

std::string errorOf(const std::string& text, double now = kNow) {
  const auto waivers = parseWaivers(text, "w.toml", now);
  return waivers.ok() ? "" : waivers.error().message + waivers.error().where;
}

Waiver one(const std::string& more = "") {
  const auto waivers = parseWaivers(kHead + waiver(more), "w.toml", kNow);
  EXPECT_TRUE(waivers.ok()) << (waivers.ok() ? "" : waivers.error().text());
  return waivers.ok() ? waivers->list.front() : Waiver{};
}

Verdict verdict(Outcome outcome, const std::string& device, const Labels& labels = {{"dtype", "bf16"}},
                const std::string& metric = "compute.gemm_throughput") {
  Verdict v;
  v.outcome = outcome;
  v.stage = "gemm";
  v.metric = metric;
  v.device = device;
  v.labels = labels;
  v.detail = "slow";
  return v;
}

const WaivedNode kNode{"n17", {{"gpu0", "S0"}, {"gpu3", "S3"}}};

WaiverUse useOf(const Waiver& waiver, const std::vector<Verdict>& verdicts, bool ran = true,
                const WaivedNode& node = kNode) {
  return waiverUses({waiver}, node, {{"gemm", ran, &verdicts}}).front();
}

/// What one verdict becomes under one waiver.
Outcome under(const Waiver& waiver, const Verdict& before, const WaivedNode& node = kNode) {
  std::vector<Verdict> verdicts = {before};
  Accounting accounting;
  accounting.expected = 1;
  accounting.add(before);
  applyWaivers({waiver}, node, verdicts, accounting);
  EXPECT_TRUE(accounting.balanced());
  EXPECT_EQ(accounting.of(verdicts.front().outcome), 1u);
  return verdicts.front().outcome;
}

TEST(Waivers, AreAThousandAtMost) {
  std::string text = kHead;
  for (size_t i = 0; i <= kMostWaivers; ++i) text += "[[waiver]]\nstage = \"s" + std::to_string(i) + "\"\n";
  EXPECT_THAT(errorOf(text), ::testing::HasSubstr("1001 waivers, more than 1000"));
}

TEST(Waivers, AreReadWithTheirPlace) {
  const auto waivers = parseWaivers(kHead + waiver("device = \"gpu3\"\nserial = \"S3\"\n"
                                                   "where = { dtype = \"bf16\" }\n"),
                                    "w.toml", kNow);
  ASSERT_TRUE(waivers.ok()) << waivers.error().text();
  ASSERT_EQ(waivers->list.size(), 1u);
  const Waiver& w = waivers->list.front();
  EXPECT_EQ(w.at, "w.toml:3:1");
  EXPECT_EQ(w.text(), "gemm compute.gemm_throughput on n17 gpu3 serial S3 (dtype=bf16)");
  EXPECT_EQ(w.approver, "J. Doe");
  EXPECT_EQ(w.expires, "2026-12-31");
}

TEST(Waivers, NeedEveryoneWhoAnswersForThem) {
  for (const char* key : {"stage", "metric", "reason", "approver", "expires"}) {
    std::string text = kHead + waiver();
    const size_t begin = text.find(std::string(key) + " = ");
    text.erase(begin, text.find('\n', begin) + 1 - begin);
    EXPECT_THAT(errorOf(text), HasSubstr(std::string("`") + key + "` is missing"));
    EXPECT_THAT(errorOf(text), HasSubstr("w.toml:3:1"));
  }
}

TEST(Waivers, MustSayWhereTheyHold) {
  std::string text = kHead + waiver();
  text.erase(text.find("node = "), std::string("node = \"n17\"\n").size());
  EXPECT_THAT(errorOf(text), HasSubstr("`node`, or the `serial` of a device"));
  EXPECT_EQ(errorOf(text + "serial = \"S3\"\n"), "");
}

TEST(Waivers, OfASerialNeedNoStageAndHoldInEachStage) {
  const std::string text = kHead +
                           "[[waiver]]\nmetric = \"compute.gemm_throughput\"\nserial = \"S3\"\n"
                           "reason = \"on order\"\napprover = \"J. Doe\"\nexpires = \"2026-12-31\"\n";
  const auto waivers = parseWaivers(text, "w.toml", kNow);
  ASSERT_TRUE(waivers.ok()) << waivers.error().text();
  const Waiver waiver = waivers->list.front();
  Verdict second = verdict(Outcome::kFail, "gpu3");
  second.stage = "sustained";
  EXPECT_EQ(under(waiver, verdict(Outcome::kFail, "gpu3")), Outcome::kWaived);
  EXPECT_EQ(under(waiver, second), Outcome::kWaived);
  EXPECT_EQ(under(waiver, verdict(Outcome::kFail, "gpu0")), Outcome::kFail) << "another part";
  EXPECT_EQ(under(waiver, verdict(Outcome::kFail, "gpu3", {}, "memory.bandwidth")), Outcome::kFail);
  EXPECT_EQ(under(waiver, verdict(Outcome::kError, "gpu3")), Outcome::kError);
  const std::vector<Verdict> first = {verdict(Outcome::kWaived, "gpu3")}, none,
                             other = {verdict(Outcome::kWaived, "gpu3")};
  const auto uses = waiverUses({waiver}, kNode,
                               {{"gemm", true, &first}, {"peer", false, &none}, {"sustained", true, &other}});
  EXPECT_EQ(uses.front().state, WaiverState::kApplied);
  EXPECT_EQ(uses.front().covered, 2u);
  EXPECT_EQ(waiverUses({waiver}, kNode, {{"peer", true, &none}}).front().state, WaiverState::kUnmatched);
  const std::string node = kHead +
                           "[[waiver]]\nmetric = \"compute.gemm_throughput\"\nnode = \"n17\"\n"
                           "reason = \"on order\"\napprover = \"J. Doe\"\nexpires = \"2026-12-31\"\n";
  EXPECT_THAT(errorOf(node), HasSubstr("stage")) << "a whole node is too much";
}

TEST(Waivers, NameTheNearestKeyOnATypo) {
  EXPECT_THAT(errorOf(kHead + waiver("devise = \"gpu3\"\n")), HasSubstr("did you mean \"device\"?"));
  EXPECT_THAT(errorOf("schema = 1\n[[waivers]]\n"), HasSubstr("did you mean \"waiver\"?"));
}

TEST(Waivers, TellEveryMistakeAtOnce) {
  const std::string error = errorOf(kHead + waiver("colour = \"red\"\n", "soon"));
  EXPECT_THAT(error, HasSubstr("w.toml:9:1"));
  EXPECT_THAT(error, HasSubstr("w.toml:10:1"));
}

TEST(Waivers, WantADateThatExists) {
  for (const char* date : {"soon", "2026-13-01", "2026-02-29", "2026-00-10", "2026-1-01", "31-12-2026",
                           "2026-12-31T00:00:00Z", "-026-12-31", "2026-12--1", "1969-12-31"})
    EXPECT_THAT(errorOf(kHead + waiver("", date)), HasSubstr("must be a date")) << date;
  EXPECT_EQ(errorOf(kHead + waiver("", "2028-02-29")), "");
}

TEST(Waivers, HoldUntilTheEndOfTheirDayAndNoLonger) {
  EXPECT_EQ(errorOf(kHead + waiver("", "2026-11-21"), kNow), "");
  EXPECT_EQ(errorOf(kHead + waiver("", "2026-11-21"), kNow + 86399), "");
  EXPECT_THAT(errorOf(kHead + waiver("", "2026-11-21"), kNow + 86400), HasSubstr("expired at the end of"));
  EXPECT_THAT(errorOf(kHead + waiver("", "2026-11-20"), kNow), HasSubstr("w.toml:9:1"));
}

TEST(Waivers, RefuseTwoOfTheSame) {
  EXPECT_THAT(errorOf(kHead + waiver() + waiver()), HasSubstr("the same as the one at w.toml:3:1"));
  EXPECT_EQ(errorOf(kHead + waiver() + waiver("device = \"gpu0\"\n")), "");
}

TEST(Waivers, RefuseAnotherSchemaAndAnEmptyFile) {
  EXPECT_THAT(errorOf("schema = 2\n" + waiver()), HasSubstr("schema 1, found 2"));
  EXPECT_THAT(errorOf(""), HasSubstr("`waiver` is missing"));
  EXPECT_THAT(errorOf("schema = 1\nwaiver = 3\n"), HasSubstr("[[waiver]]"));
  EXPECT_THAT(errorOf("schema = [1\n"), HasSubstr("not valid TOML"));
}

TEST(Waivers, CoverFailAndFlakyAndNothingElse) {
  EXPECT_EQ(under(one(), verdict(Outcome::kFail, "gpu3")), Outcome::kWaived);
  EXPECT_EQ(under(one(), verdict(Outcome::kFlaky, "gpu3")), Outcome::kWaived);
  for (const Outcome outcome : {Outcome::kError, Outcome::kSkipped, Outcome::kUnjudged, Outcome::kPass,
                                Outcome::kWarn, Outcome::kDeferred, Outcome::kElsewhere})
    EXPECT_EQ(under(one(), verdict(outcome, "gpu3")), outcome) << outcomeName(outcome);
}

TEST(Waivers, CoverOnlyWhatTheyName) {
  const Verdict fail = verdict(Outcome::kFail, "gpu3");
  EXPECT_EQ(under(one("device = \"gpu3\"\n"), fail), Outcome::kWaived);
  EXPECT_EQ(under(one("device = \"gpu0\"\n"), fail), Outcome::kFail);
  EXPECT_EQ(under(one("serial = \"S3\"\n"), fail), Outcome::kWaived);
  EXPECT_EQ(under(one("serial = \"S0\"\n"), fail), Outcome::kFail);
  EXPECT_EQ(under(one("where = { dtype = \"bf16\" }\n"), fail), Outcome::kWaived);
  EXPECT_EQ(under(one("where = { dtype = \"fp8\" }\n"), fail), Outcome::kFail);
  EXPECT_EQ(under(one(), fail, {"n18", kNode.serials}), Outcome::kFail);
  EXPECT_EQ(under(one(), verdict(Outcome::kFail, "gpu3", {}, "compute.copy")), Outcome::kFail);
  Verdict other = fail;
  other.stage = "burn";
  EXPECT_EQ(under(one(), other), Outcome::kFail);
}

TEST(Waivers, SayInTheVerdictWhoTookResponsibility) {
  std::vector<Verdict> verdicts = {verdict(Outcome::kFail, "gpu3")};
  Accounting accounting;
  accounting.add(verdicts.front());
  applyWaivers({one()}, kNode, verdicts, accounting);
  EXPECT_EQ(verdicts.front().detail,
            "slow; fail, waived: riser on order (approved by J. Doe, until 2026-12-31)");
}

TEST(WaiverUses, CountWhatIsCovered) {
  const auto use = useOf(one(), {verdict(Outcome::kWaived, "gpu3"), verdict(Outcome::kPass, "gpu0")});
  EXPECT_EQ(use.state, WaiverState::kApplied);
  EXPECT_EQ(use.covered, 1u);
  EXPECT_EQ(use.passed, 1u);
}

TEST(WaiverUses, CallAPassUnexpected) {
  const auto use = useOf(one("device = \"gpu3\"\n"), {verdict(Outcome::kPass, "gpu3")});
  EXPECT_EQ(use.state, WaiverState::kUnexpectedPass);
  EXPECT_THAT(use.detail, HasSubstr("remove it"));
}

TEST(WaiverUses, AreUnmatchedWhereNothingHasWhatTheyAskFor) {
  const std::vector<Verdict> verdicts = {verdict(Outcome::kPass, "gpu3")};
  const auto label = useOf(one("where = { dtype = \"fp8\" }\n"), verdicts);
  EXPECT_EQ(label.state, WaiverState::kUnmatched);
  EXPECT_THAT(label.detail, HasSubstr("dtype=bf16"));
  EXPECT_THAT(useOf(one("device = \"gpu33\"\n"), verdicts).detail, HasSubstr("did you mean \"gpu3\"?"));
  EXPECT_THAT(useOf(one("serial = \"gone\"\n"), verdicts).detail, HasSubstr("was it replaced?"));
  EXPECT_EQ(useOf(one(), {verdict(Outcome::kPass, "gpu3", {}, "compute.copy")}).state,
            WaiverState::kUnmatched);
}

TEST(WaiverUses, AreUndecidedWhereNothingWasMeasured) {
  EXPECT_EQ(useOf(one(), {}, false).state, WaiverState::kUndecided);
  Verdict crash = verdict(Outcome::kError, "gpu3", {}, "");
  const auto use = useOf(one("device = \"gpu3\"\n"), {crash});
  EXPECT_EQ(use.state, WaiverState::kUndecided);
  EXPECT_THAT(use.detail, HasSubstr("a waiver cannot cover"));
  EXPECT_EQ(useOf(one(), {verdict(Outcome::kPass, "gpu0"), crash}).state, WaiverState::kUndecided)
      << "an error is no unexpected pass";
}

TEST(WaiverUses, OfOtherNodesDoNotConcernThisOne) {
  EXPECT_EQ(useOf(one(), {}, true, {"n18", {}}).state, WaiverState::kElsewhere);
  Waiver bySerial = one("serial = \"S9\"\n");
  bySerial.node.clear();
  EXPECT_EQ(useOf(bySerial, {verdict(Outcome::kFail, "gpu3")}).state, WaiverState::kElsewhere);
}

/// Comparing each with each takes minutes.
TEST(WaiverUses, OfAThousandThatFindNothingAreSettledInSeconds) {
  const std::string filler(100, 'h');
  std::vector<Verdict> verdicts;
  for (int i = 0; i < 4000; ++i)
    verdicts.push_back(verdict(Outcome::kPass, "gpu0", {}, filler + std::to_string(i)));
  std::vector<Waiver> waivers(990, one());
  for (size_t i = 0; i < waivers.size(); ++i) waivers[i].metric = std::string(100, 'g') + std::to_string(i);
  waivers[0].metric = filler.substr(1) + "7";
  const std::clock_t before = std::clock();
  const std::vector<WaiverUse> uses = waiverUses(waivers, kNode, {{"gemm", true, &verdicts}});
  EXPECT_LT((std::clock() - before) / CLOCKS_PER_SEC, 10);
  ASSERT_EQ(uses.size(), waivers.size());
  EXPECT_THAT(uses.front().detail, HasSubstr("; did you mean \"" + filler + "7\"?"));
  for (const WaiverUse& use : uses) EXPECT_EQ(use.state, WaiverState::kUnmatched);
}

TEST(WaiverUses, NamesOfStatesGoBothWays) {
  for (const auto state : {WaiverState::kApplied, WaiverState::kUnexpectedPass, WaiverState::kUndecided,
                           WaiverState::kUnmatched, WaiverState::kElsewhere}) {
    const auto back = fromName<WaiverState>(nameOf(state));
    ASSERT_TRUE(back);
    EXPECT_EQ(*back, state);
  }
  EXPECT_FALSE(fromName<WaiverState>("forgiven"));
}

}  // namespace
}  // namespace muster::testing
