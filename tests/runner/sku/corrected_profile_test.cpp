// SPDX-License-Identifier: Apache-2.0
// Profiles corrected by few machines: which limits move, how far, and what each says of its origin.
#include "runner/sku/corrected_profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "runner/sku/profile_writer.h"
#include "tests/support/process.h"

namespace muster {
namespace {

constexpr double kTolerance = 0.1;
const Provenance kCorrection = {"2026-11-23", "node-quick", "driver 580.95.05", std::string(64, 'a'), "", 1};

Profile shippedH100() {
  auto profile = loadProfile(testing::sourceDir() / "plans/skus/h100-sxm5-80gb.toml", nullptr);
  EXPECT_TRUE(profile.ok());
  return profile.ok() ? std::move(*profile) : Profile{};
}

/// One metric of all 8 devices of each node; the last device is 20% slow.
LearnGroup group(const std::string& metric, const Labels& where, const std::string& unit, double value,
                 const std::string& peak = "", int nodes = 1) {
  LearnGroup made{"stage", metric, where, unit, Direction::kHigher, peak, {}};
  for (int node = 0; node < nodes; ++node)
    for (int device = 0; device < 8; ++device)
      made.figures.push_back({node, device, device == 7 ? 0.8 * value : value, 20});
  return made;
}

LearnGroup gemm(double value) {
  return group("compute.gemm_throughput", {{"dtype", "bf16"}, {"size", "8192"}}, "FLOP/s", value,
               "flops.bf16");
}

LearnGroup hostCopy(double value) {
  return group("memory.host_to_device_bandwidth", {{"engine", "copy_engine"}, {"numa", "near"}}, "B/s",
               value);
}

LearnInput inputOf(std::vector<LearnGroup> groups, size_t nodes = 1) {
  LearnInput input;
  for (size_t i = 0; i < nodes; ++i) input.nodes.push_back({"n" + std::to_string(i), {}, ""});
  input.physical.resize(groups.size());
  input.groups = std::move(groups);
  return input;
}

CorrectedProfile corrected(const Profile& base, const LearnInput& input,
                           const Provenance& from = kCorrection) {
  auto result = correctedProfile(base, input, kTolerance, from);
  EXPECT_TRUE(result.ok()) << result.error().text();
  return result.ok() ? std::move(*result) : CorrectedProfile{};
}

const Expectation& of(const Profile& profile, const std::string& metric, const Labels& where = {}) {
  const auto at =
      std::find_if(profile.expectations.begin(), profile.expectations.end(),
                   [&](const Expectation& e) { return e.metric == metric && labelsMatch(e.where, where); });
  EXPECT_NE(at, profile.expectations.end());
  return *at;
}

std::string refusalOf(const LearnInput& input) {
  const auto result = correctedProfile(shippedH100(), input, kTolerance, kCorrection);
  EXPECT_FALSE(result.ok());
  return result.ok() ? "" : result.error().text();
}

TEST(CorrectedProfile, StaysOneThatIsOnlyChosenByName) {
  Profile base = shippedH100();
  base.match.onlyByName = true;
  const std::string text = profileToml(corrected(base, inputOf({gemm(600e12)})).profile, "");
  EXPECT_NE(text.find("\nonly_by_name = true\n"), std::string::npos);
}

TEST(CorrectedProfile, MovesABaselineThatTheMachineMissesAndSaysWhereItWasMeasured) {
  const Profile base = shippedH100();
  const CorrectedProfile result = corrected(base, inputOf({gemm(600e12)}));
  const Expectation& e = of(result.profile, "compute.gemm_throughput", {{"dtype", "bf16"}});
  EXPECT_EQ(e.kind, CheckKind::kBaseline);
  EXPECT_DOUBLE_EQ(e.limit, 600e12) << "the median: one slow device does not count";
  EXPECT_DOUBLE_EQ(e.tolerance, 0.1);
  for (const char* part : {"measured: 600 TFLOP/s on n0, 2026-11-23", "8 figures with 160 samples",
                           "plan node-quick", "driver 580.95.05", "record sha256 aaaa",
                           "in place of at least 617.4 TFLOP/s (derived, not measured"})
    EXPECT_NE(e.source.find(part), std::string::npos) << part << " in " << e.source;
  ASSERT_EQ(result.corrections.size(), 1u);
  EXPECT_TRUE(result.corrections[0].looser);
  EXPECT_EQ(result.corrections[0].before, "at least 617.4 TFLOP/s");
  EXPECT_EQ(result.corrections[0].after, "at least 540 TFLOP/s");
}

TEST(CorrectedProfile, KeepsEverythingElseAsItWas) {
  const Profile base = shippedH100();
  const CorrectedProfile result = corrected(base, inputOf({gemm(600e12)}));
  ASSERT_EQ(result.profile.expectations.size(), base.expectations.size());
  size_t same = 0;
  for (size_t i = 0; i < base.expectations.size(); ++i)
    same += toJson(base.expectations[i]) == toJson(result.profile.expectations[i]) ? 1 : 0;
  EXPECT_EQ(same, base.expectations.size() - 1);
  EXPECT_EQ(result.kept, same);
  EXPECT_EQ(result.profile.peaks, base.peaks);
  EXPECT_EQ(result.profile.stageParams, base.stageParams);
}

TEST(CorrectedProfile, KeepsALimitThatIsMetAndWouldOnlyBecomeLooser) {
  // 50 GB/s meets the 48 GB/s; 10% below 50 would be less.
  const CorrectedProfile result = corrected(shippedH100(), inputOf({gemm(690e12), hostCopy(50e9)}));
  EXPECT_TRUE(result.corrections.empty());
  ASSERT_EQ(result.confirmed.size(), 2u);
  EXPECT_EQ(of(result.profile, "memory.host_to_device_bandwidth").limit, 48e9);
}

TEST(CorrectedProfile, TightensALimitOfTheSameKind) {
  const CorrectedProfile result = corrected(
      shippedH100(), inputOf({hostCopy(60e9),
                              group("memory.bandwidth", {{"op", "read"}}, "B/s", 3e12, "memory_bandwidth")}));
  ASSERT_EQ(result.corrections.size(), 2u);
  EXPECT_FALSE(result.corrections[0].looser || result.corrections[1].looser);
  const Expectation& least = of(result.profile, "memory.host_to_device_bandwidth");
  EXPECT_EQ(least.kind, CheckKind::kMin);
  EXPECT_DOUBLE_EQ(least.limit, 54e9);
  EXPECT_NE(least.source.find("10% by --tolerance"), std::string::npos) << least.source;
  const Expectation& share = of(result.profile, "memory.bandwidth", {{"op", "read"}});
  EXPECT_EQ(share.kind, CheckKind::kOfPeak);
  EXPECT_NEAR(share.limit, 0.9 * 3e12 / 3.35e12, 1e-4);
}

TEST(CorrectedProfile, TightensOfALimitThatHoldsForMoreOnlyWhatWasMeasured) {
  Profile base = shippedH100();
  Expectation wide = of(base, "compute.gemm_throughput", {{"dtype", "bf16"}});
  wide.where.clear();
  base.expectations = {wide};
  LearnGroup other = gemm(800e12);
  other.where["dtype"] = "fp8_e4m3";
  const CorrectedProfile result = corrected(base, inputOf({gemm(740e12), other}));
  ASSERT_EQ(result.profile.expectations.size(), 3u);
  EXPECT_EQ(toJson(result.profile.expectations[0]), toJson(wide)) << "of other types nothing is known";
  EXPECT_DOUBLE_EQ(result.profile.expectations[1].limit, 740e12);
  EXPECT_EQ(result.profile.expectations[1].where, gemm(0).where);
  EXPECT_DOUBLE_EQ(result.profile.expectations[2].limit, 800e12);
  EXPECT_NE(result.corrections[1].what.find("dtype=fp8_e4m3"), std::string::npos);
}

TEST(CorrectedProfile, ALimitThatHalfOfTheNodesMeetStays) {
  LearnInput input = inputOf(
      {group("compute.gemm_throughput", {{"dtype", "bf16"}, {"size", "8192"}}, "FLOP/s", 684e12, "", 2)}, 2);
  for (LearnFigure& figure : input.groups[0].figures)
    if (figure.node == 1) figure.value *= 0.78;
  EXPECT_TRUE(corrected(shippedH100(), input).corrections.empty());
}

TEST(CorrectedProfile, WhatMeetsALimitKeepsItWhereAnotherPartMovesIt) {
  Profile base = shippedH100();
  Expectation wide = of(base, "compute.gemm_throughput", {{"dtype", "bf16"}});
  wide.where.clear();
  base.expectations = {wide};
  LearnGroup other = gemm(500e12);
  other.where["dtype"] = "fp8_e4m3";
  const CorrectedProfile result = corrected(base, inputOf({gemm(690e12), other}));
  ASSERT_EQ(result.profile.expectations.size(), 2u);
  EXPECT_DOUBLE_EQ(result.profile.expectations[0].limit, 500e12);
  EXPECT_EQ(result.profile.expectations[1].where, gemm(0).where);
  EXPECT_DOUBLE_EQ(result.profile.expectations[1].limit, wide.limit);
  ASSERT_EQ(result.corrections.size(), 1u);
  EXPECT_EQ(result.corrections[0].measured, "500 TFLOP/s by dtype=fp8_e4m3 size=8192");
}

TEST(CorrectedProfile, OfSeveralFiguresUnderOneLimitTheOneWithTheLeastRoomCounts) {
  LearnGroup hot = gemm(600e12);
  hot.stage = "hot";
  const CorrectedProfile result = corrected(shippedH100(), inputOf({gemm(740e12), hot}));
  EXPECT_DOUBLE_EQ(of(result.profile, "compute.gemm_throughput", {{"dtype", "bf16"}}).limit, 600e12);
}

TEST(CorrectedProfile, LeavesSickNodesOutAndNamesTheOthers) {
  LearnInput input = inputOf(
      {group("compute.gemm_throughput", {{"dtype", "bf16"}, {"size", "8192"}}, "FLOP/s", 600e12, "", 3)}, 3);
  for (LearnFigure& figure : input.groups[0].figures)
    if (figure.node == 1) figure.value = 1e12;
  input.nodes[1].sick = "memory.pattern_errors of gpu1 fail";
  const CorrectedProfile result = corrected(shippedH100(), input);
  const Expectation& e = of(result.profile, "compute.gemm_throughput", {{"dtype", "bf16"}});
  EXPECT_DOUBLE_EQ(e.limit, 600e12);
  EXPECT_NE(e.source.find("on n0, n2, 2026"), std::string::npos) << e.source;
  input.nodes[0].sick = input.nodes[2].sick = "x";
  EXPECT_NE(refusalOf(input).find("no healthy node: n0: x"), std::string::npos);
}

LearnGroup readRate(double value, int nodes) {
  return group("memory.bandwidth", {{"op", "read"}}, "B/s", value, "memory_bandwidth", nodes);
}

TEST(CorrectedProfile, CountsOnlyWhatMostHealthyNodesMeasuredAndNamesTheRest) {
  const Labels own = {{"foo", "bar"}, {"op", "read"}};
  LearnInput input =
      inputOf({readRate(3e12, 10), group("memory.bandwidth", own, "B/s", 2e12, "memory_bandwidth", 10)}, 10);
  std::erase_if(input.groups[1].figures, [](const LearnFigure& f) { return f.node != 9; });
  const Labels read = {{"op", "read"}};
  const CorrectedProfile result = corrected(shippedH100(), input);
  EXPECT_NEAR(of(result.profile, "memory.bandwidth", read).limit, 0.9 * 3e12 / 3.35e12, 1e-4);
  ASSERT_EQ(result.notCounted.size(), 1u);
  EXPECT_EQ(result.notCounted[0], "memory.bandwidth foo=bar op=read in stage stage: 1 of 10 healthy nodes");
  // Half of the nodes are not most of them.
  input.groups[1] = group("memory.bandwidth", own, "B/s", 2e12, "memory_bandwidth", 5);
  EXPECT_EQ(corrected(shippedH100(), input).notCounted.size(), 1u);
  input.groups.erase(input.groups.begin());
  EXPECT_NE(refusalOf(input).find("foo=bar op=read in stage stage: 5 of 10 healthy nodes"),
            std::string::npos);
}

TEST(CorrectedProfile, NamesTheNodesThatMeasuredTheFigureAndNoOther) {
  LearnInput input = inputOf({readRate(3e12, 3)}, 4);
  std::erase_if(input.groups[0].figures, [](const LearnFigure& f) { return f.node == 1; });
  input.groups[0].figures.push_back({3, 0, 3e12, 20});
  const CorrectedProfile result = corrected(shippedH100(), input);
  const std::string& source = of(result.profile, "memory.bandwidth", {{"op", "read"}}).source;
  EXPECT_NE(
      source.find("on n0, n2, n3, 2026-11-23, median of 3 nodes' medians of 17 figures with 340 samples"),
      std::string::npos)
      << source;
  EXPECT_NE(result.profile.facts.at(kLearnedFact).find("measured on n0, n2, n3 under"), std::string::npos);
}

TEST(CorrectedProfile, GivesEachNodeOneVoteHoweverManyFiguresItHas) {
  LearnInput input = inputOf({readRate(3e12, 10)}, 10);
  for (int i = 0; i < 500; ++i) input.groups[0].figures.push_back({9, i % 8, 1e12, 20});
  const CorrectedProfile result = corrected(shippedH100(), input);
  EXPECT_NEAR(of(result.profile, "memory.bandwidth", {{"op", "read"}}).limit, 0.9 * 3e12 / 3.35e12, 1e-4);
}

TEST(CorrectedProfile, RefusesWhatCannotBe) {
  EXPECT_NE(refusalOf(inputOf({gemm(std::numeric_limits<double>::quiet_NaN())})).find("record is damaged"),
            std::string::npos);
  LearnInput fast = inputOf({gemm(1200e12)});
  fast.physical[0] = {989.4e12, "peak flops.bf16"};
  EXPECT_NE(refusalOf(fast).find("above the physical limit"), std::string::npos);
  EXPECT_NE(refusalOf(inputOf({group("mine.rate", {}, "B/s", 1e9)}))
                .find("no limit of profile h100-sxm5-80gb was measured"),
            std::string::npos);
  EXPECT_NE(refusalOf(inputOf({gemm(0)})).find("no limit of profile"), std::string::npos);
}

TEST(CorrectedProfile, CorrectedAgainItStillSaysWhatWasThereAtFirst) {
  const CorrectedProfile once = corrected(shippedH100(), inputOf({gemm(600e12)}));
  const CorrectedProfile twice = corrected(once.profile, inputOf({gemm(500e12)}));
  const std::string& source = of(twice.profile, "compute.gemm_throughput", {{"dtype", "bf16"}}).source;
  EXPECT_NE(source.find("measured: 500 TFLOP/s"), std::string::npos) << source;
  EXPECT_NE(source.find("in place of at least 617.4 TFLOP/s"), std::string::npos) << source;
  EXPECT_EQ(source.find("600"), std::string::npos) << source;
}

TEST(CorrectedProfile, IsReadAgainAndMarkedByItsOrigin) {
  Provenance simulated = kCorrection;
  simulated.scenario = "h100x8-healthy";
  for (const bool real : {true, false}) {
    const Profile profile =
        corrected(shippedH100(), inputOf({gemm(600e12)}), real ? kCorrection : simulated).profile;
    const auto again = parseProfile(profileToml(profile, "x"), "again.toml", nullptr);
    ASSERT_TRUE(again.ok()) << again.error().text();
    EXPECT_EQ(checkOrigin(*again, false).ok(), real);
    EXPECT_EQ(checkOrigin(*again, true).ok(), !real);
    const std::string& source = of(*again, "compute.gemm_throughput", {{"dtype", "bf16"}}).source;
    EXPECT_EQ(source.rfind("SIMULATED", 0) == 0, !real) << source;
  }
}

}  // namespace
}  // namespace muster
