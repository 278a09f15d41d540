// SPDX-License-Identifier: Apache-2.0
// The profiles that ship: complete, sourced, and fair to a healthy machine.
#include <gtest/gtest.h>

#include "runner/sku/profile.h"
#include "tests/support/process.h"

namespace muster {
namespace {

std::map<std::string, Profile> shippedProfiles() {
  auto profiles = loadProfiles(testing::sourceDir() / "plans" / "skus", nullptr);
  EXPECT_TRUE(profiles.ok()) << profiles.error().text();
  return *profiles;
}

TEST(ShippedProfiles, AreNamedAsTheirFiles) {
  const auto profiles = shippedProfiles();
  EXPECT_EQ(profiles.size(), 5u);
  for (const auto& [name, profile] : profiles) EXPECT_EQ(profile.path.stem().string(), name);
}

TEST(ShippedProfiles, GiveSourceAndRemedyOfEveryExpectation) {
  for (const auto& [name, profile] : shippedProfiles()) {
    EXPECT_FALSE(profile.expectations.empty()) << name;
    for (const Expectation& e : profile.expectations) {
      EXPECT_GT(e.source.size(), 20u) << name << " " << e.metric;
      EXPECT_GT(e.remedy.size(), 20u) << name << " " << e.metric;
    }
  }
}

TEST(ShippedProfiles, WantEightGpusANodeAndAnyHost) {
  for (const auto& [name, profile] : shippedProfiles())
    EXPECT_EQ(profile.deviceCount, name == "host" ? 0 : 8) << name;
}

TEST(ShippedProfiles, FixTheShapeOfEveryGemmFigure) {
  for (const auto& [name, profile] : shippedProfiles()) {
    if (name == "host") continue;
    EXPECT_EQ(profile.stageParams.at("compute.gemm")["size"], 8192) << name;
    for (const Expectation& e : profile.expectations)
      if (e.metric == "compute.gemm_throughput") {
        EXPECT_EQ(e.where.at("size"), "8192") << name;
      }
  }
}

/// The lowest figure that an expectation lets pass.
double floorOf(const Expectation& e, const Profile& profile) {
  if (e.kind == CheckKind::kBaseline) return e.limit * (1 - e.tolerance);
  if (e.kind != CheckKind::kOfPeak) return 0;
  return e.limit * profile.peaks.at(e.metric == "memory.bandwidth" ? "memory_bandwidth"
                                                                   : "flops." + e.where.at("dtype"));
}

TEST(ShippedProfiles, RejectAThirdOfTheFlopsAndAcceptMeasuredFigures) {
  struct Measured {
    const char* profile;
    const char* label;
    const char* value;
    double figure;
  };
  const Measured measured[] = {
      {"h100-sxm5-80gb", "dtype", "bf16", 730e12}, {"h100-sxm5-80gb", "op", "copy", 2.90e12},
      {"h200-sxm", "dtype", "bf16", 705e12},       {"h200-sxm", "op", "triad", 4.15e12},
      {"a100-sxm4-80gb", "dtype", "tf32", 130e12}, {"a100-sxm4-80gb", "op", "copy", 1.61e12},
      {"b200", "dtype", "bf16", 1484e12},          {"h100-sxm5-80gb", "dtype", "fp8_e4m3", 1403e12 * 0.85}};
  const auto profiles = shippedProfiles();
  for (const Measured& m : measured) {
    const Profile& profile = profiles.at(m.profile);
    bool judged = false;
    for (const Expectation& e : profile.expectations) {
      auto label = e.where.find(m.label);
      if (label == e.where.end() || label->second != m.value) continue;
      judged = true;
      EXPECT_LT(floorOf(e, profile), m.figure) << m.profile << " " << m.value;
      EXPECT_GT(floorOf(e, profile), m.figure / 3) << m.profile << " " << m.value;
    }
    EXPECT_TRUE(judged) << m.profile << " " << m.value;
  }
}

TEST(ShippedProfiles, NeverTakeABestShapeFigureAsALimit) {
  const std::map<std::string, double> bestShapes = {
      {"a100-sxm4-80gb", 271e12}, {"h100-sxm5-80gb", 794.5e12}, {"h200-sxm", 794e12}, {"b200", 1745e12}};
  const auto profiles = shippedProfiles();
  for (const auto& [name, best] : bestShapes) {
    for (const Expectation& e : profiles.at(name).expectations) {
      auto dtype = e.where.find("dtype");
      if (dtype == e.where.end() || dtype->second != "bf16") continue;
      EXPECT_LT(floorOf(e, profiles.at(name)), 0.93 * best) << name;
    }
  }
}

}  // namespace
}  // namespace muster
