// SPDX-License-Identifier: Apache-2.0
// Learned profiles as files: what is written is read again, what was replaced is said, what is possible is
// known; and the difference of two profiles.
#include "runner/sku/learned_profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "runner/sku/physical.h"
#include "runner/sku/profile_diff.h"
#include "runner/sku/profile_writer.h"
#include "tests/runner/sku/made_fleet.h"
#include "tests/support/process.h"

namespace muster {
namespace {

Profile shipped(const std::string& name) {
  auto profile = loadProfile(testing::sourceDir() / "plans" / "skus" / (name + ".toml"), nullptr);
  EXPECT_TRUE(profile.ok()) << profile.error().text();
  if (!profile.ok()) return {};
  for (Expectation& e : profile->expectations)
    if (e.remedy.empty()) e.remedy = "what the plugin says of " + e.metric;  // as with a catalogue
  return std::move(*profile);
}

void expectSame(const Profile& a, const Profile& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.description, b.description);
  EXPECT_EQ(a.deviceCount, b.deviceCount);
  EXPECT_EQ(a.match.kind, b.match.kind);
  EXPECT_EQ(a.match.pciIds, b.match.pciIds);
  EXPECT_EQ(a.match.names, b.match.names);
  EXPECT_EQ(a.match.memoryMin, b.match.memoryMin);
  EXPECT_EQ(a.match.memoryMax, b.match.memoryMax);
  EXPECT_EQ(a.facts, b.facts);
  EXPECT_EQ(a.stageParams, b.stageParams);
  ASSERT_EQ(a.peaks.size(), b.peaks.size());
  for (const auto& [name, peak] : a.peaks) EXPECT_NEAR(b.peaks.at(name) / peak, 1, 1e-9) << name;
  ASSERT_EQ(a.expectations.size(), b.expectations.size());
  for (size_t i = 0; i < a.expectations.size(); ++i) {
    Json x = toJson(a.expectations[i]);
    Json y = toJson(b.expectations[i]);
    x.erase("at");
    y.erase("at");
    if (x.contains("limit")) {
      EXPECT_NEAR(y["limit"].get<double>() / x["limit"].get<double>(), 1, 1e-9) << x;
      x.erase("limit");
      y.erase("limit");
    }
    EXPECT_EQ(x, y);
  }
}

TEST(ProfileToml, IsReadAgainAsItWasWritten) {
  for (const char* name : {"a100-sxm4-80gb", "h100-sxm5-80gb", "h200-sxm", "b200", "host"}) {
    const Profile profile = shipped(name);
    const auto again = parseProfile(profileToml(profile, "two\nlines"), "again.toml", nullptr);
    ASSERT_TRUE(again.ok()) << again.error().text();
    expectSame(profile, *again);
  }
}

TEST(ProfileToml, EscapesWhatANameMayHold) {
  Profile profile = shipped("host");
  profile.description = "a \"quoted\" back\\slash\nline\x01 \xff";
  const auto again = parseProfile(profileToml(profile, "no # trouble"), "again.toml", nullptr);
  ASSERT_TRUE(again.ok()) << again.error().text();
  EXPECT_EQ(again->description, "a \"quoted\" back\\slash\nline\x01 \xef\xbf\xbd");
}

TEST(ExactQuantity, LosesNothing) {
  EXPECT_EQ(exactQuantity(729.4e12, "FLOP/s"), "729.4 TFLOP/s");
  EXPECT_EQ(exactQuantity(79e9, "B"), "79 GB");
  EXPECT_EQ(exactQuantity(1234567891, "B/s"), "1234567891");
  EXPECT_EQ(exactQuantity(18, "count"), "18");
}

struct Case {
  LearnInput input;
  Learned learned;
};

/// A fleet of which the first metric is the GEMM of H100s.
Case gemmFleet(double teraflops, double sigma = 0.005) {
  testing::FleetModel model;
  model.nodes = 40;
  model.metrics = 1;
  model.sigma = sigma;
  Case c{testing::fleetOf(model), {}};
  LearnGroup& group = c.input.groups[0];
  group.metric = "compute.gemm_throughput";
  group.where = {{"dtype", "bf16"}, {"size", "8192"}};
  group.stage = "gemm";
  group.peak = "flops.bf16";
  for (LearnFigure& figure : group.figures) figure.value *= teraflops;
  auto learned = learnLimits(c.input, {});
  EXPECT_TRUE(learned.ok());
  if (learned.ok()) c.learned = *learned;
  return c;
}

const Provenance kProvenance = {"2026-11-21",         "node-full", "driver 580.95.05, NCCL 2.28",
                                std::string(64, 'a'), "",          1};

TEST(LearnedProfile, PutsTheLearnedLimitInPlaceOfTheOldOne) {
  const Profile base = shipped("h100-sxm5-80gb");
  const Case c = gemmFleet(740);
  const LearnedProfile result = learnedProfile(base, c.input, c.learned, {}, kProvenance);
  EXPECT_EQ(result.profile.expectations.size(), base.expectations.size());
  const Expectation& e = result.profile.expectations.front();
  EXPECT_EQ(e.metric, "compute.gemm_throughput");
  EXPECT_EQ(e.kind, CheckKind::kBaseline);
  EXPECT_NEAR(e.limit, 740e12, 1e12);
  EXPECT_GT(e.tolerance, 0.02);
  EXPECT_LT(e.tolerance, 0.04);
  for (const char* part : {"n = ", "40 healthy nodes", "sigma", "95%", "driver 580.95.05", "NCCL 2.28",
                           "2026-11-21", "aaaaaaaa", "plan node-full"})
    EXPECT_NE(e.source.find(part), std::string::npos) << part << " in " << e.source;
  EXPECT_EQ(e.source.find("SIMULATED"), std::string::npos);
  EXPECT_FALSE(e.remedy.empty());
  EXPECT_EQ(result.replaced.size(), 1u);
  EXPECT_TRUE(result.unused.empty());
}

/// Whatever fails by the base fails by what was learned on it.
TEST(LearnedProfile, KeepsALimitThatIsStricterWhateverItsKind) {
  const Case c = gemmFleet(620);  // 10% below what the shipped profile calls usual
  Expectation strict;
  strict.metric = "compute.gemm_throughput";
  strict.unit = "FLOP/s";
  for (const auto& [kind, limit] :
       {std::pair(CheckKind::kBaseline, 686e12), {CheckKind::kMin, 617e12}, {CheckKind::kOfPeak, 0.63}}) {
    Profile base = shipped("h100-sxm5-80gb");
    strict.kind = kind;
    strict.limit = limit;
    strict.tolerance = 0.1;
    base.expectations = {strict};
    const LearnedProfile result = learnedProfile(base, c.input, c.learned, {}, kProvenance);
    ASSERT_EQ(result.profile.expectations.size(), 1u) << checkKindName(kind);
    EXPECT_EQ(toJson(result.profile.expectations[0]), toJson(strict));
    ASSERT_EQ(result.unused.size(), 1u);
    EXPECT_NE(result.unused[0].find("would be looser than the base's"), std::string::npos)
        << result.unused[0];
  }
}

TEST(LearnedProfile, KeepsALimitThatHoldsForMoreThanWasMeasured) {
  Profile base = shipped("h100-sxm5-80gb");
  base.expectations.resize(1);
  base.expectations[0].where = {{"dtype", "bf16"}};
  const Case c = gemmFleet(740);
  const LearnedProfile result = learnedProfile(base, c.input, c.learned, {}, kProvenance);
  EXPECT_EQ(result.profile.expectations.size(), 2u);
  EXPECT_TRUE(result.replaced.empty());
}

TEST(LearnedProfile, SaysNothingOfOtherParameters) {
  Case c = gemmFleet(740);
  c.input.groups[0].params = {{"duration", "30.0"}};
  LearnGroup hot = c.input.groups[0];
  hot.stage = "hot";
  hot.params = {{"duration", "600.0"}};
  for (LearnFigure& figure : hot.figures) figure.value *= 0.95;
  c.input.groups.push_back(hot);
  c.input.physical.resize(2);
  const auto learned = learnLimits(c.input, {});
  ASSERT_TRUE(learned.ok()) << learned.error().text();
  const Profile base = shipped("h100-sxm5-80gb");
  const LearnedProfile result = learnedProfile(base, c.input, *learned, {}, kProvenance);
  EXPECT_TRUE(result.replaced.empty()) << "the base's limits hold for all";
  ASSERT_EQ(result.learned, 2u);
  for (const double limit : {740e12, 703e12})
    EXPECT_TRUE(std::any_of(result.profile.expectations.begin(), result.profile.expectations.begin() + 2,
                            [&](const Expectation& e) {
                              return std::fabs(e.limit - limit) < 1e12 &&
                                     e.params.at("duration") == (limit > 710e12 ? "30.0" : "600.0");
                            }));
  const auto again = parseProfile(profileToml(result.profile, ""), "again.toml", nullptr);
  ASSERT_TRUE(again.ok()) << again.error().text();
  EXPECT_EQ(again->expectations[0].params, result.profile.expectations[0].params);
}

/// A limit judges all that has its labels, in each stage, and whatever other labels that has.
TEST(LearnedProfile, SparesAllThatALimitJudgesOrHasNone) {
  for (const bool known : {true, false})
    for (const bool sameLabels : {true, false}) {
      Case c = gemmFleet(740);
      LearnGroup other = c.input.groups[0];
      other.stage = "gemm-after";
      if (!sameLabels) other.where["layout"] = "tn";
      for (LearnFigure& figure : other.figures)
        figure.value *= known ? 0.95 : figure.node % 2 == 0 ? 1 : 0.9;  // two kinds of nodes
      c.input.groups.push_back(other);
      c.input.physical.resize(2);
      const auto learned = learnLimits(c.input, {});
      ASSERT_TRUE(learned.ok()) << learned.error().text();
      Profile base = shipped("h100-sxm5-80gb");
      base.expectations.clear();
      const LearnedProfile result = learnedProfile(base, c.input, *learned, {}, kProvenance);
      ASSERT_EQ(result.profile.expectations.size(), !known ? 0u : sameLabels ? 1u : 2u);
      for (const Expectation& e : result.profile.expectations) EXPECT_NEAR(e.limit, 703e12, 1e12);
      EXPECT_EQ(result.unused.size(), known ? 0u : 1u);
    }
}

TEST(LearnedProfile, IsMarkedWhenItWasLearnedFromASimulation) {
  const Case c = gemmFleet(740);
  Provenance simulated = kProvenance;
  simulated.scenario = "h100x8-healthy";
  const Profile profile =
      learnedProfile(shipped("h100-sxm5-80gb"), c.input, c.learned, {}, simulated).profile;
  EXPECT_EQ(profile.description.rfind("SIMULATED", 0), 0u);
  EXPECT_EQ(profile.expectations.front().source.rfind("SIMULATED", 0), 0u);
  EXPECT_NE(profile.facts.at("simulated").find("h100x8-healthy"), std::string::npos);
}

TEST(CheckOrigin, KeepsFiguresOfAScenarioFromRealHardwareAndTheOtherWayRound) {
  const Case c = gemmFleet(740);
  const Profile base = shipped("h100-sxm5-80gb");
  Provenance simulated = kProvenance;
  simulated.scenario = "h100x8-healthy";
  const Profile ofScenario = learnedProfile(base, c.input, c.learned, {}, simulated).profile;
  const Profile ofHardware = learnedProfile(base, c.input, c.learned, {}, kProvenance).profile;
  for (const bool run : {false, true})
    EXPECT_TRUE(checkOrigin(base, run).ok()) << "a shipped one judges both";
  EXPECT_TRUE(checkOrigin(ofScenario, true).ok());
  EXPECT_TRUE(checkOrigin(ofHardware, false).ok());
  const auto scenario = checkOrigin(ofScenario, false);
  ASSERT_FALSE(scenario.ok());
  EXPECT_EQ(scenario.error().code, ErrorCode::kUsage);
  for (const char* part : {"h100x8-healthy", "come from a scenario", "muster baseline learn RUN -o FILE"})
    EXPECT_NE(scenario.error().text().find(part), std::string::npos) << scenario.error().text();
  const auto hardware = checkOrigin(ofHardware, true);
  ASSERT_FALSE(hardware.ok());
  for (const char* part : {"learned from real records", "this run is simulated", "--allow-simulated"})
    EXPECT_NE(hardware.error().text().find(part), std::string::npos) << hardware.error().text();
  // What is relearned from real records on top of a simulated profile loses the mark, so it is not offered as
  // a base.
  EXPECT_TRUE(checkOrigin(learnedProfile(ofHardware, c.input, c.learned, {}, simulated).profile, true).ok());
}

TEST(LearnedProfile, TakesTheStageThatNeedsMostRoom) {
  Case c = gemmFleet(740);
  LearnGroup hot = c.input.groups[0];
  hot.stage = "gemm-hot";
  for (LearnFigure& figure : hot.figures) figure.value *= 0.95;
  c.input.groups.push_back(hot);
  c.input.physical.resize(2);
  const auto learned = learnLimits(c.input, {});
  ASSERT_TRUE(learned.ok()) << learned.error().text();
  const Profile profile =
      learnedProfile(shipped("h100-sxm5-80gb"), c.input, *learned, {}, kProvenance).profile;
  EXPECT_NEAR(profile.expectations.front().limit, 703e12, 1e12);
  EXPECT_NE(profile.expectations.front().source.find("stage gemm-hot"), std::string::npos);
  EXPECT_NE(profile.expectations[1].where, profile.expectations[0].where);
}

TEST(LearnedProfile, KeepsABroadLimitWhileAFigureUnderItWasNotLearned) {
  Profile base = shipped("h100-sxm5-80gb");
  base.expectations.resize(1);
  base.expectations[0].where.clear();
  Case c = gemmFleet(740);
  LearnGroup other = c.input.groups[0];
  other.where["dtype"] = "tf32";
  other.figures.resize(8);  // one node
  c.input.groups.push_back(other);
  c.input.physical.resize(2);
  const auto learned = learnLimits(c.input, {});
  ASSERT_TRUE(learned.ok()) << learned.error().text();
  ASSERT_EQ(learned->notLearned.size(), 1u);
  EXPECT_EQ(learnedProfile(base, c.input, *learned, {}, kProvenance).profile.expectations.size(), 2u);
}

TEST(PhysicalLimit, IsThePeakOrTheLink) {
  const Profile h100 = shipped("h100-sxm5-80gb");
  LearnGroup group;
  group.metric = "compute.gemm_throughput";
  group.peak = "flops.bf16";
  EXPECT_EQ(physicalLimit(group, h100).most, 989.4e12);
  group = {};
  group.metric = "memory.host_to_device_bandwidth";
  EXPECT_NEAR(physicalLimit(group, h100).most, 63e9, 0.1e9);
  EXPECT_NE(physicalLimit(group, h100).source.find("PCIe generation 5 x16"), std::string::npos);
  group.metric = "memory.peer_bandwidth";
  group.where = {{"direction", "unidirectional"}};
  EXPECT_NEAR(physicalLimit(group, h100).most, 482e9, 5e9);
  group.metric = "collective.large_message_bus_bandwidth";
  group.where = {{"nodes", "1"}, {"op", "all_reduce"}};
  EXPECT_GT(physicalLimit(group, h100).most, 600e9) << "switches that sum up come above the link";
  EXPECT_LT(physicalLimit(group, h100).most, 800e9);
  group.metric = "mine.rate";
  EXPECT_EQ(physicalLimit(group, h100).most, 0);
}

Direction higher(const std::string& metric) {
  return metric.find("time") == std::string::npos ? Direction::kHigher : Direction::kLower;
}

Expectation limit(const std::string& metric, CheckKind kind, double figure, double tolerance = 0) {
  Expectation e;
  e.metric = metric;
  e.kind = kind;
  e.limit = figure;
  e.tolerance = tolerance;
  e.unit = higher(metric) == Direction::kLower ? "s" : "B/s";
  return e;
}

TEST(DiffProfiles, TellsLooserFromTighterOnEitherSide) {
  Profile a;
  Profile b;
  a.expectations = {limit("x.rate", CheckKind::kMin, 100e9), limit("x.other", CheckKind::kMin, 100e9),
                    limit("x.time", CheckKind::kMax, 1e-3), limit("x.gone", CheckKind::kMin, 1e9),
                    limit("x.same", CheckKind::kMin, 7e9)};
  b.expectations = {limit("x.rate", CheckKind::kBaseline, 110e9, 0.05),
                    limit("x.other", CheckKind::kMin, 90e9), limit("x.time", CheckKind::kBaseline, 1e-3, 0.1),
                    limit("x.same", CheckKind::kMin, 7e9), limit("x.new", CheckKind::kMin, 1e9)};
  b.deviceCount = 8;
  const ProfileDiff diff = diffProfiles(a, b, higher);
  const auto of = [&](const std::string& what) {
    const auto at = std::find_if(diff.limits.begin(), diff.limits.end(),
                                 [&](const LimitChange& c) { return c.what == what; });
    return at == diff.limits.end() ? LimitChange{Change::kOther, "missing", "", "", 0, {}} : *at;
  };
  EXPECT_EQ(of("x.rate").change, Change::kTighter);
  EXPECT_NEAR(of("x.rate").moved, 0.045, 1e-9);
  EXPECT_EQ(of("x.rate").after, "at least 104.5 GB/s");
  EXPECT_EQ(of("x.other").change, Change::kLooser);
  EXPECT_EQ(of("x.time").change, Change::kLooser);
  EXPECT_NEAR(of("x.time").moved, 0.1, 1e-9);
  EXPECT_EQ(of("x.gone").change, Change::kRemoved);
  EXPECT_EQ(of("x.new").change, Change::kAdded);
  EXPECT_EQ(diff.same, 1u);
  EXPECT_EQ(diff.facts, std::vector<std::string>{"device_count: 8, was 0"});
}

TEST(DiffProfiles, NamesEveryFieldThatDiffers) {
  const Expectation usual = limit("x.rate", CheckKind::kMin, 100e9);
  const auto changed = [&](auto change) {
    Profile a, b;
    a.expectations = b.expectations = {usual};
    change(b.expectations[0]);
    const ProfileDiff diff = diffProfiles(a, b, higher);
    EXPECT_EQ(diff.same, 0u);
    EXPECT_EQ(diff.limits.size(), 1u);
    return diff.limits.empty() ? LimitChange{} : diff.limits[0];
  };
  using Fields = std::vector<std::string>;
  const LimitChange statistic = changed([](Expectation& e) { e.statistic = "min"; });
  EXPECT_EQ(statistic.change, Change::kOther);
  EXPECT_EQ(statistic.fields, Fields{"statistic: min, was median"});
  const LimitChange band = changed([](Expectation& e) { e.warnBand = 0.02; });
  EXPECT_EQ(band.fields, Fields{"warning band: 2%, was 0%"});
  const LimitChange severity = changed([](Expectation& e) { e.severity = Severity::kWarn; });
  EXPECT_EQ(severity.change, Change::kLooser) << "it rejects nothing now";
  EXPECT_EQ(severity.before, "at least 100 GB/s");
  EXPECT_EQ(severity.fields, Fields{"severity: warn, was fail"});
  EXPECT_EQ(changed([](Expectation& e) { e.source = "new"; }).fields, Fields{"source: new, was nothing"});
  const LimitChange sameFigure = changed([](Expectation& e) {
    e.kind = CheckKind::kBaseline;
    e.limit = 200e9;
    e.tolerance = 0.5;
  });
  EXPECT_EQ(sameFigure.fields, (Fields{"check: baseline, was min", "tolerance: 50%, was 0%"}));
}

TEST(DiffProfiles, PairsTheLimitsOfOneSeverityOfAPlaceFirst) {
  Expectation fail = limit("x.rate", CheckKind::kMin, 100e9), warn = limit("x.rate", CheckKind::kMin, 110e9);
  warn.severity = Severity::kWarn;
  Profile a, b;
  a.expectations = {fail, warn};
  fail.limit = 90e9;
  b.expectations = {warn, fail};
  const ProfileDiff diff = diffProfiles(a, b, higher);
  EXPECT_EQ(diff.same, 1u);
  ASSERT_EQ(diff.limits.size(), 1u);
  EXPECT_EQ(diff.limits[0].change, Change::kLooser);
  EXPECT_EQ(diff.limits[0].after, "at least 90 GB/s");
  EXPECT_TRUE(diff.limits[0].fields.empty());
}

TEST(DiffProfiles, OfAProfileWithItselfIsEmpty) {
  const Profile profile = shipped("b200");
  const ProfileDiff diff = diffProfiles(profile, profile, higher);
  EXPECT_TRUE(diff.facts.empty());
  EXPECT_TRUE(diff.limits.empty());
  EXPECT_EQ(diff.same, profile.expectations.size());
}

}  // namespace
}  // namespace muster
