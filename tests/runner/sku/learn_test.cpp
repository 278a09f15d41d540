// SPDX-License-Identifier: Apache-2.0
// Learning limits: what they are worth on healthy and sick fleets, and what is refused.
#include "runner/sku/learn.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/runner/sku/made_fleet.h"

namespace muster {
namespace {

using testing::FleetModel;
using testing::fleetOf;
using testing::floorOf;

constexpr uint64_t kSeed = 424242;  ///< not used while the method was made

FleetModel model(int nodes, double sigma, bool skewed = false) {
  FleetModel m;
  m.nodes = nodes;
  m.sigma = sigma;
  m.skewed = skewed;
  m.seed = kSeed;
  return m;
}

Learned learned(const LearnInput& input, const LearnOptions& options = {}) {
  auto result = learnLimits(input, options);
  EXPECT_TRUE(result.ok()) << result.error().text();
  return result.ok() ? std::move(*result) : Learned{};
}

std::string refusal(const LearnInput& input) {
  const auto result = learnLimits(input, {});
  EXPECT_FALSE(result.ok());
  if (result.ok()) return "";
  EXPECT_EQ(result.error().code, ErrorCode::kUsage);
  return result.error().message;
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(LearnLimits, FindsValueSpreadAndNumber) {
  const Learned l = learned(fleetOf(model(100, 0.01)));
  ASSERT_EQ(l.limits.size(), 10u);
  for (const LearnedLimit& limit : l.limits) {
    EXPECT_NEAR(limit.value, 1e12 * static_cast<double>(limit.group + 1),
                0.003e12 * static_cast<double>(limit.group + 1));
    EXPECT_NEAR(limit.sigma, 0.0112, 0.0015);  // own and common part
    EXPECT_GE(limit.n, 790u);
    EXPECT_EQ(limit.nodes, 100u);
    EXPECT_GT(limit.caught, limit.tolerance);
  }
  EXPECT_EQ(l.used, 100u);
}

TEST(LearnLimits, SparesTheOtherHalfOfAHealthyFleetAndCatchesASlowGpu) {
  for (const bool skewed : {false, true}) {
    FleetModel half = model(500, 0.006, skewed);
    const Learned l = learned(fleetOf(half));
    half.nodes = 1000;
    int wrong = 0;
    int caught = 0;
    for (int node = 500; node < 1000; ++node) {
      wrong += testing::rejects(l, half, node, 1) ? 1 : 0;
      caught += testing::rejects(l, half, node, 0.95) ? 1 : 0;
    }
    EXPECT_LE(wrong, 1) << skewed;
    EXPECT_GE(caught, 495) << skewed;
  }
}

TEST(LearnLimits, AreTheSameWithTenPercentFaultyNodes) {
  for (const bool whole : {false, true}) {
    for (const bool skewed : {false, true}) {
      FleetModel sick = model(300, 0.01, skewed);
      sick.sickNodes = 0.1;
      sick.wholeNodes = whole;
      LearnInput healthy = fleetOf(sick);
      for (LearnGroup& group : healthy.groups)
        std::erase_if(group.figures,
                      [&](const LearnFigure& f) { return testing::sickFactor(sick, f.node) < 1; });
      const Learned from = learned(healthy);
      const Learned all = learned(fleetOf(sick));
      ASSERT_EQ(from.limits.size(), all.limits.size());
      for (size_t i = 0; i < from.limits.size(); ++i)
        EXPECT_NEAR(floorOf(all.limits[i]) / floorOf(from.limits[i]), 1, 0.01) << whole << skewed;
    }
  }
}

/// Of 16 or 64 nodes two or more are slow alike, up to the share that is allowed.
TEST(LearnLimits, AreNotWidenedByNodesThatAreSlowAlike) {
  for (const int nodes : {16, 64})
    for (const int sick : {2, 3, nodes / 6})
      for (const double factor : {0.7, 0.85, 0.92, 0.94})
        for (uint64_t seed = 1; seed <= 4; ++seed) {
          SCOPED_TRACE(std::to_string(sick) + " of " + std::to_string(nodes) + " at " +
                       std::to_string(factor) + ", seed " + std::to_string(seed));
          FleetModel made = model(nodes, 0.008);
          made.metrics = 2;
          made.seed = seed;
          const LearnInput healthy = fleetOf(made);
          LearnInput input = healthy;
          for (LearnFigure& figure : input.groups[0].figures)
            if (figure.node < sick) figure.value *= factor;
          const Learned all = learned(input), from = learned(healthy);
          EXPECT_EQ(all.sick.size(), static_cast<size_t>(sick));
          EXPECT_LT(all.limits[0].tolerance, 1.3 * from.limits[0].tolerance);
        }
}

/// Each sick node is slow in its own way. Where they cannot be told from the others, no limit is better than
/// a wide one.
TEST(LearnLimits, AreNotWidenedByNodesThatAreSlowByDegrees) {
  int limits = 0;
  for (const int nodes : {16, 64})
    for (const int devices : {1, 8})
      for (const int sick : {1, 2, 3, nodes / 6})
        for (const double loss : {0.1, 0.2, 0.3})
          for (uint64_t seed = 1; seed <= 2; ++seed) {
            FleetModel made = model(nodes, 0.005);
            made.metrics = 2;
            made.devices = devices;
            made.seed = seed;
            const LearnInput healthy = fleetOf(made);
            LearnInput input = healthy;
            for (LearnFigure& figure : input.groups[0].figures)
              if (figure.node < sick) figure.value *= 1 - loss * (figure.node + 1) / sick;
            const auto all = learnLimits(input, {});
            if (!all.ok() || all->limits.front().group != 0) continue;
            ++limits;
            EXPECT_LT(all->limits[0].tolerance, learned(healthy).limits[0].tolerance + 0.05)
                << sick << " of " << nodes << " with " << devices << ", " << loss << " at most, seed "
                << seed;
          }
  EXPECT_GT(limits, 75) << "of 96";
}

TEST(LearnLimits, RefuseALimitThatIsWiderThanItMayBe) {
  LearnInput input = fleetOf(model(20, 0.008));
  for (LearnFigure& figure : input.groups[0].figures) figure.value = std::pow(figure.value, 10);
  const Learned l = learned(input);
  EXPECT_EQ(l.limits.size(), input.groups.size() - 1);
  ASSERT_EQ(l.notLearned.size(), 1u);
  EXPECT_TRUE(says(l.notLearned[0].second, "away, expected at most 25%. Check for two kinds of nodes"))
      << l.notLearned[0].second;
}

TEST(LearnLimits, RefuseATailThatIsTooLongAndNameTheWorst) {
  LearnInput input = fleetOf(model(100, 0.008));
  for (LearnFigure& figure : input.groups[0].figures)
    figure.value *= 1 + 0.02 * std::log(sim::uniform(sim::mix(static_cast<uint64_t>(figure.node),
                                                              static_cast<uint64_t>(figure.device))));
  const Learned l = learned(input);
  ASSERT_EQ(l.notLearned.size(), 1u);
  const std::string& why = l.notLearned[0].second;
  EXPECT_TRUE(says(why, "some values are worse than the spread of the others explains")) << why;
  EXPECT_TRUE(says(why, "The worst nodes are n")) << why;
}

/// Places (GPUs, pairs of GPUs) that are slow or fast alike in all nodes are no node's fault: only their
/// group is not learned, and an outlier is found wherever it is.
TEST(LearnLimits, BlameNoNodeForAPlaceThatDiffersInAllNodes) {
  for (const int nodes : {10, 16, 100})
    for (const int slow : {1, 2, 4, 7})
      for (const double factor : {0.85, 0.93, 0.96, 1.15})
        for (const bool pairs : {false, true})
          for (const int sick : {-1, 0, 7}) {  // device of node 3
            SCOPED_TRACE(::testing::Message() << nodes << " nodes, " << slow << " places at " << factor
                                              << ", pairs " << pairs << ", sick " << sick);
            LearnInput input = fleetOf(model(nodes, 0.005));
            LearnGroup& group = input.groups[0];
            if (pairs) {  // each GPU measures two peers, of which the first is slow
              input.places = {"peer=a", "peer=b"};
              for (size_t i = 0, n = group.figures.size(); i < n; ++i) {
                group.figures[i].place = 0;
                LearnFigure other = group.figures[i];
                other.place = 1;
                other.value *= i % 3 == 0 ? 1.002 : 0.999;
                group.figures.push_back(other);
              }
            }
            for (LearnFigure& figure : group.figures) {
              if (figure.device < slow && figure.place < 1) figure.value *= factor;
              if (figure.node == 3 && figure.device == sick) figure.value *= 0.9;
            }
            const Learned l = learned(input);
            EXPECT_EQ(l.limits.size(), input.groups.size() - 1);
            ASSERT_EQ(l.notLearned.size(), 1u);
            EXPECT_TRUE(says(l.notLearned[0].second, "in all nodes alike")) << l.notLearned[0].second;
            EXPECT_TRUE(says(l.notLearned[0].second, factor < 1 ? "gpu0" : "than gpu0") || slow > 1)
                << l.notLearned[0].second;
            ASSERT_EQ(l.leftOut.size(), sick < 0 ? 0u : 1u);
            if (sick < 0) continue;
            EXPECT_EQ(std::pair(l.leftOut[0].node, l.leftOut[0].device), std::pair(3, sick));
          }
}

TEST(LearnLimits, RefuseTwoKindsOfNodes) {
  LearnInput input = fleetOf(model(20, 0.008));
  for (LearnFigure& figure : input.groups[0].figures)
    if (figure.node % 2 == 0) figure.value *= 0.92;
  const Learned l = learned(input);
  EXPECT_EQ(l.limits.size(), input.groups.size() - 1);
  ASSERT_EQ(l.notLearned.size(), 1u);
  const std::string& why = l.notLearned[0].second;
  EXPECT_TRUE(says(why, "made.rate0 in stage stage: two kinds of nodes, ")) << why;
  EXPECT_TRUE(says(why, "the fewer are worse: ")) << why;
  EXPECT_TRUE(says(why, "and 5 more. Learn from one kind alone")) << why;
}

/// Seldom is a healthy node taken for one of another kind.
TEST(LearnLimits, LeaveHealthyNodesIn) {
  size_t left = 0;
  for (const bool skewed : {false, true})
    for (const int nodes : {10, 16, 64})
      for (uint64_t seed = 1; seed <= 40; ++seed) {
        FleetModel made = model(nodes, 0.01, skewed);
        made.seed = seed;
        left += learned(fleetOf(made)).sick.size();
      }
  EXPECT_LT(left, 36u) << "of 240 fleets";
}

TEST(LearnLimits, NameWhoWasLeftOutAndWhy) {
  LearnInput input = fleetOf(model(50, 0.01));
  for (LearnFigure& figure : input.groups[2].figures)
    if (figure.node == 7 && figure.device == 3) figure.value *= 0.7;
  const Learned l = learned(input);
  ASSERT_EQ(l.leftOut.size(), 1u);
  EXPECT_EQ(l.leftOut[0].node, 7);
  EXPECT_EQ(l.leftOut[0].device, 3);
  EXPECT_TRUE(says(l.leftOut[0].why, "made.rate2 in stage stage is ")) << l.leftOut[0].why;
  EXPECT_TRUE(says(l.leftOut[0].why, "sigma worse than the others")) << l.leftOut[0].why;
  EXPECT_EQ(l.sick, std::vector<int>{7});
  EXPECT_EQ(l.used, 50u) << "the other GPUs of that node are as good as any";
}

TEST(LearnLimits, LeaveOutWhatIsFarTooGood) {
  LearnInput input = fleetOf(model(50, 0.01));
  for (LearnFigure& figure : input.groups[0].figures)
    if (figure.node == 4) figure.value *= 1.5;
  const Learned l = learned(input);
  ASSERT_EQ(l.leftOut.size(), 8u);
  EXPECT_TRUE(says(l.leftOut[0].why, "better than the others"));
}

TEST(LearnLimits, FindANodeThatIsALittleSlowInEverything) {
  // 3 sigma in each figure is nothing; in all 80 of a node it is.
  LearnInput input = fleetOf(model(100, 0.01));
  for (LearnGroup& group : input.groups)
    for (LearnFigure& figure : group.figures)
      if (figure.node == 9) figure.value *= 0.965;
  const Learned l = learned(input);
  EXPECT_TRUE(std::any_of(l.leftOut.begin(), l.leftOut.end(),
                          [](const LeftOut& o) { return o.node == 9 && o.device == -1; }));
}

TEST(LearnLimits, FindADeviceThatTheSpreadOfNodesHides) {
  // Nodes differ by 2 sigma, so 3 sigma in the mean of one device is nothing; beside the others of its node
  // it is.
  FleetModel spread = model(100, 0.01);
  spread.common = 2;
  LearnInput input = fleetOf(spread);
  for (LearnGroup& group : input.groups)
    for (LearnFigure& figure : group.figures)
      if (figure.node == 9 && figure.device == 3) figure.value *= 0.97;
  const Learned l = learned(input);
  ASSERT_EQ(l.leftOut.size(), 1u);
  EXPECT_EQ(l.leftOut[0].node, 9);
  EXPECT_EQ(l.leftOut[0].device, 3);
  EXPECT_TRUE(says(l.leftOut[0].why, "compared with the other devices of its node, is ")) << l.leftOut[0].why;
  EXPECT_TRUE(says(l.leftOut[0].why, "sigma worse than the others")) << l.leftOut[0].why;
}

TEST(LearnLimits, PutADeviceBesideTwoOthersAtTheLeast) {
  // Of two devices nobody knows which one is odd, and neither is left out.
  FleetModel pairs = model(100, 0.01);
  pairs.devices = 2;
  pairs.common = 2;
  LearnInput input = fleetOf(pairs);
  for (LearnGroup& group : input.groups)
    for (LearnFigure& figure : group.figures)
      if (figure.node == 9 && figure.device == 1) figure.value *= 0.97;
  EXPECT_TRUE(learned(input).leftOut.empty());
}

TEST(LearnLimits, LeaveOutNodesThatFailedTheirChecks) {
  LearnInput input = fleetOf(model(20, 0.01));
  input.nodes[3].sick = "env.ecc_uncorrected of gpu1 fail";
  const Learned l = learned(input);
  EXPECT_EQ(l.used, 19u);
  EXPECT_EQ(l.sick, std::vector<int>{3});
  for (const LearnedLimit& limit : l.limits) EXPECT_EQ(limit.nodes, 19u);
}

TEST(LearnLimits, LetNoNodeOutvoteTheOthersByTheNumberOfItsFigures) {
  const LearnInput honest = fleetOf(model(10, 0.01));
  const Learned before = learned(honest);
  LearnInput input = honest;
  for (int i = 0; i < 4000; ++i) input.groups[0].figures.push_back({9, i % 8, 0.7e12 + 1e6 * i});
  const Learned l = learned(input);
  for (const LeftOut& left : l.leftOut) EXPECT_EQ(left.node, 9) << left.why;
  ASSERT_EQ(l.limits.size(), 10u);
  EXPECT_NEAR(l.limits[0].value / before.limits[0].value, 1, 0.01);
  EXPECT_DOUBLE_EQ(l.tail, before.tail) << "the others' limits do not become looser by it";
}

TEST(LearnLimits, IgnoreWhatOnlyOneNodeMeasured) {
  LearnInput input = fleetOf(model(10, 0.01));
  for (LearnFigure& figure : input.groups[3].figures)
    if (figure.node == 9) figure.value *= 0.9;
  const Learned before = learned(input);
  EXPECT_FALSE(before.leftOut.empty());
  for (int i = 0; i < 200; ++i) {
    LearnGroup own = input.groups[0];
    own.where = {{"own", std::to_string(i)}};
    std::erase_if(own.figures, [](const LearnFigure& f) { return f.node != 9; });
    input.groups.push_back(own);
  }
  input.physical.resize(input.groups.size());
  const Learned l = learned(input);
  EXPECT_EQ(l.notLearned.size(), 200u);
  EXPECT_DOUBLE_EQ(l.tail, before.tail);
  ASSERT_EQ(l.leftOut.size(), before.leftOut.size());
  for (size_t i = 0; i < l.leftOut.size(); ++i) EXPECT_EQ(l.leftOut[i].why, before.leftOut[i].why);
}

TEST(LearnLimits, CountNoFiguresOfNodesThatFailedForTheShareOfFalseRejects) {
  LearnInput input = fleetOf(model(10, 0.01));
  input.nodes[9].sick = "made.rate0 of gpu0 fail";
  const double tail = learned(input).tail;
  for (int i = 0; i < 4000; ++i) input.groups[0].figures.push_back({9, i % 8, 1e12});
  EXPECT_DOUBLE_EQ(learned(input).tail, tail);
}

TEST(LearnLimits, OfTimesLieAbove) {
  LearnInput input = fleetOf(model(40, 0.01));
  for (LearnGroup& group : input.groups) {
    group.direction = Direction::kLower;
    group.unit = "s";
  }
  for (LearnFigure& figure : input.groups[1].figures)
    if (figure.node == 5 && figure.device == 0) figure.value *= 1.4;
  const Learned l = learned(input);
  ASSERT_EQ(l.limits.size(), 10u);
  ASSERT_EQ(l.leftOut.size(), 1u);
  EXPECT_EQ(l.leftOut[0].node, 5);
  EXPECT_GT(l.limits[0].value, 0);
  for (const LearnFigure& figure : input.groups[0].figures)
    EXPECT_LT(figure.value, l.limits[0].value * (1 + l.limits[0].tolerance));
}

TEST(LearnLimits, DoNotDependOnTheOrderOfFigures) {
  LearnInput input = fleetOf(model(40, 0.01));
  const Learned before = learned(input);
  for (LearnGroup& group : input.groups) std::reverse(group.figures.begin(), group.figures.end());
  const Learned after = learned(input);
  for (size_t i = 0; i < before.limits.size(); ++i) {
    EXPECT_EQ(before.limits[i].n, after.limits[i].n);
    EXPECT_NEAR(before.limits[i].value / after.limits[i].value, 1, 1e-12);
    EXPECT_NEAR(before.limits[i].tolerance / after.limits[i].tolerance, 1, 1e-9);
  }
}

TEST(LearnLimits, AreWiderWhereFewerNodesWereSeen) {
  double last = 1000;
  for (const int nodes : {8, 32, 128, 512}) {
    const Learned l = learned(fleetOf(model(nodes, 0.01)));
    double sum = 0;
    for (const LearnedLimit& limit : l.limits) sum += limit.tolerance / limit.sigma;
    EXPECT_LT(sum, last) << nodes;
    last = sum;
  }
}

TEST(LearnLimits, RefuseTooFewNodes) {
  const std::string why = refusal(fleetOf(model(7, 0.01)));
  EXPECT_TRUE(says(why, "7 nodes are too few")) << why;
  EXPECT_TRUE(says(why, "at least 8")) << why;
  EXPECT_TRUE(says(why, "run the plan on more nodes")) << why;
}

TEST(LearnLimits, RefuseAFaultyFleetAndNameTheFaultyNodes) {
  LearnInput input = fleetOf(model(40, 0.01));
  for (size_t i = 0; i < 9; ++i) input.nodes[i].sick = "compute.gemm_throughput of gpu0 fail";
  const std::string why = refusal(input);
  EXPECT_TRUE(says(why, "9 of 40 nodes failed or are outliers")) << why;
  EXPECT_TRUE(says(why, "at most 20%")) << why;
  EXPECT_TRUE(says(why, "n0 (compute.gemm_throughput of gpu0 fail)")) << why;
  EXPECT_TRUE(says(why, "and 4 more")) << why;
}

TEST(LearnLimits, RefuseWhenTooFewHealthyNodesAreLeft) {
  LearnInput input = fleetOf(model(8, 0.01));
  input.nodes[2].sick = "memory.pattern_errors of gpu3 fail";
  const std::string why = refusal(input);
  EXPECT_TRUE(says(why, "7 of 8 nodes are healthy, required at least 8")) << why;
  EXPECT_TRUE(says(why, "memory.pattern_errors of gpu3 fail")) << why;
}

TEST(LearnLimits, RefuseMoreThanIsPossible) {
  LearnInput input = fleetOf(model(20, 0.01));
  input.physical[4] = {4.5e12, "peak flops.bf16 of profile x"};
  const std::string why = refusal(input);
  EXPECT_TRUE(says(why, "made.rate4 in stage stage is ")) << why;
  EXPECT_TRUE(says(why, "4.5 TFLOP/s (peak flops.bf16 of profile x)")) << why;
}

TEST(LearnLimits, RefuseDamagedFigures) {
  for (const double bad : {std::nan(""), -1.0, std::numeric_limits<double>::infinity()}) {
    LearnInput input = fleetOf(model(20, 0.01));
    input.groups[1].figures[17].value = bad;
    EXPECT_TRUE(says(refusal(input), "made.rate1")) << bad;
  }
}

TEST(LearnLimits, SayWhatTheyLeaveOpen) {
  LearnInput input = fleetOf(model(20, 0.01));
  std::erase_if(input.groups[0].figures, [](const LearnFigure& f) { return f.node >= 5; });
  for (LearnFigure& figure : input.groups[1].figures)
    figure.value *= figure.node % 2 == 0 ? 1 : 2;  // two kinds
  for (LearnFigure& figure : input.groups[2].figures) figure.value = 0;
  const Learned l = learned(input);
  EXPECT_EQ(l.limits.size(), 7u);
  ASSERT_EQ(l.notLearned.size(), 3u);
  EXPECT_TRUE(says(l.notLearned[0].second, "5 healthy nodes measured it, required at least 8"));
  EXPECT_TRUE(says(l.notLearned[1].second, "two kinds of nodes")) << l.notLearned[1].second;
  EXPECT_TRUE(says(l.notLearned[2].second, "zero on every node"));
}

TEST(LearnLimits, RefuseWhenNothingIsLeftToLearn) {
  LearnInput input = fleetOf(model(20, 0.01));
  input.groups.clear();
  input.physical.clear();
  EXPECT_TRUE(says(refusal(input), "no limit could be learned"));
}

}  // namespace
}  // namespace muster
