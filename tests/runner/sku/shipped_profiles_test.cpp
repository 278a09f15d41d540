// SPDX-License-Identifier: Apache-2.0
// The profiles that ship: complete, sourced, and fair to a healthy machine.
#include <gtest/gtest.h>

#include <cmath>
#include <regex>
#include <set>

#include "runner/sku/physical.h"
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
  EXPECT_EQ(profiles.size(), 19u);
  for (const auto& [name, profile] : profiles) EXPECT_EQ(profile.path.stem().string(), name);
}

TEST(ShippedProfiles, GiveTheSourceOfEveryExpectation) {
  for (const auto& [name, profile] : shippedProfiles()) {
    EXPECT_FALSE(profile.expectations.empty()) << name;
    for (const Expectation& e : profile.expectations)
      EXPECT_GT(e.source.size(), 20u) << name << " " << e.metric;
  }
}

/// A server holds any number of cards, and what joins them is its own.
bool isCard(const Profile& profile) {
  return profile.description.find("PCIe cards") != std::string::npos;
}

/// GPUs that NVLink joins: neither cards nor one GPU in a virtual machine.
bool isBoard(const Profile& profile) {
  return !isCard(profile) && !profile.match.onlyByName;
}

TEST(ShippedProfiles, WantTheGpusOfANodeAndAnyNumberOfCardsOrCpus) {
  for (const auto& [name, profile] : shippedProfiles())
    EXPECT_EQ(profile.deviceCount, name == "host" || isCard(profile)   ? 0
                                   : profile.name.substr(0, 2) == "gb" ? 4
                                   : name.ends_with("-1x")             ? 1
                                                                       : 8)
        << name;
}

/// A card without a bridge has no NVLink: what NVLink must reach holds for pairs that it joins.
TEST(ShippedProfiles, LimitNvlinkOfCardsWhereItJoinsThem) {
  size_t bridged = 0;
  for (const auto& [name, profile] : shippedProfiles()) {
    if (!isCard(profile)) continue;
    for (const Expectation& e : profile.expectations) {
      if (e.metric != "memory.peer_bandwidth") continue;
      const auto link = e.where.find("link");
      const bool nvlink = link != e.where.end() && link->second == "nvlink";
      bridged += nvlink;
      EXPECT_EQ(e.limit > 50e9, nvlink) << name << ": PCIe carries no more";
    }
  }
  EXPECT_EQ(bridged, 4u) << "A100 PCIe with 40 and 80 GB, H100 PCIe, H100 NVL";
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

/// The plans' own shares are those that cards of low power reach, too: 40%, sustained 35%.
TEST(ShippedProfiles, AskMoreOfBoardsThanThePlansDo) {
  for (const auto& [name, profile] : shippedProfiles()) {
    if (name == "host" || isCard(profile)) continue;
    std::set<std::string> asked;
    for (const Expectation& e : profile.expectations) {
      const bool enough = e.metric == "compute.gemm_throughput"
                              ? floorOf(e, profile) >= 0.5 * profile.peaks.at("flops." + e.where.at("dtype"))
                              : e.kind == CheckKind::kOfPeak && e.limit >= 0.45;
      if (enough && e.metric == "compute.gemm_throughput") asked.insert(e.where.at("dtype"));
      if (enough && e.metric == "compute.sustained_throughput") asked.insert("sustained");
    }
    for (const char* what : {"bf16", "tf32", "sustained"})
      EXPECT_TRUE(asked.contains(what)) << name << ' ' << what;
  }
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

/// The one expectation of a metric with these labels.
const Expectation& limitOf(const Profile& profile, const std::string& metric, const Labels& where) {
  static const Expectation none;
  const Expectation* found = nullptr;
  for (const Expectation& e : profile.expectations)
    if (e.metric == metric && e.where == where) {
      EXPECT_EQ(found, nullptr) << profile.name << " " << metric << ": two limits";
      found = &e;
    }
  EXPECT_NE(found, nullptr) << profile.name << " " << metric;
  return found == nullptr ? none : *found;
}

TEST(ShippedProfiles, SayOfALimitThatIsDerivedThatItWasNotMeasured) {
  const auto profiles = shippedProfiles();
  const auto derived = [&](const Profile& profile, const std::string& metric, const Labels& where) {
    const Expectation& e = limitOf(profile, metric, where);
    EXPECT_EQ(e.source.rfind("derived, not measured: ", 0), 0u) << profile.name << " " << e.source;
    return e.kind == CheckKind::kMin ? e.limit : floorOf(e, profile);
  };
  const Labels bf16{{"dtype", "bf16"}, {"size", "8192"}};
  EXPECT_DOUBLE_EQ(derived(profiles.at("h100-sxm5-80gb"), "compute.gemm_throughput", bf16), 0.9 * 686e12);
  EXPECT_DOUBLE_EQ(derived(profiles.at("h200-sxm"), "compute.gemm_throughput", bf16), 0.9 * 686e12);
  EXPECT_DOUBLE_EQ(floorOf(limitOf(profiles.at("a100-sxm4-80gb"), "compute.gemm_throughput", bf16),
                           profiles.at("a100-sxm4-80gb")),
                   0.92 * 252e12);
  const Profile& b200 = profiles.at("b200");
  for (const auto& [op, share] : {std::pair{"copy", 0.83}, {"triad", 0.85}, {"read", 0.85}, {"write", 0.85}})
    EXPECT_DOUBLE_EQ(derived(b200, "memory.bandwidth", {{"op", op}}), share * 8e12) << op;
  EXPECT_DOUBLE_EQ(
      derived(b200, "memory.peer_bandwidth", {{"direction", "unidirectional"}, {"engine", "copy_engine"}}),
      690e9);
  for (const auto& [name, profile] : profiles) {
    if (name == "host" || !isBoard(profile)) continue;
    const Labels place{{"ranks", std::to_string(profile.deviceCount)}, {"nodes", "1"}};
    Labels all = place;
    all.insert({{"op", "all_reduce"}, {"bytes", "8589934592"}});
    const double best = limitOf(profile, "collective.large_message_bus_bandwidth", all).limit;
    for (const char* op : {"all_gather", "reduce_scatter", "alltoall"}) {
      Labels where = place;
      where.insert({{"op", op}, {"bytes", "1073741824"}});
      const double least = derived(profile, "collective.large_message_bus_bandwidth", where);
      EXPECT_GT(least, best / 2) << name << " " << op;
      EXPECT_LT(least, best) << name << " " << op << ": only all_reduce can use NVLS to the full";
    }
  }
}

TEST(ShippedProfiles, LimitMemoryErrorsByPlaceAndLinksByRate) {
  for (const auto& [name, profile] : shippedProfiles()) {
    if (name == "host") continue;
    for (const auto& [memory, most] : {std::pair{"sram", 10e3}, {"dram", 20e6}}) {
      EXPECT_EQ(limitOf(profile, "env.ecc_errors", {{"memory", memory}, {"kind", "corrected"}}).limit, most);
      EXPECT_EQ(limitOf(profile, "env.ecc_corrected", {{"memory", memory}}).limit, most);
    }
    if (name != "t4") {
      EXPECT_EQ(limitOf(profile, "env.remapped_rows", {{"kind", "uncorrected"}}).limit, 511);
    }
    if (isBoard(profile)) {
      EXPECT_EQ(limitOf(profile, "env.nvlink_errors", {}).limit, 0);
    }
    if (name.substr(0, 2) == "gb") continue;  // its way to the host is not PCIe
    const double generation = limitOf(profile, "env.pcie_link_generation", {}).limit;
    const double lanes = 16, perLane = 0.06 * std::pow(2, generation);  // 1.92 in generation 5
    EXPECT_EQ(limitOf(profile, "env.pcie_replays_per_minute", {}).limit, std::ceil(lanes * perLane)) << name;
  }
}

/// What is a fault of one design may be the design of another: these must not reject a node.
TEST(ShippedProfiles, OnlyWarnOfWhatDependsOnTheNodesDesign) {
  for (const auto& [name, profile] : shippedProfiles()) {
    if (name == "host") continue;
    for (const char* metric : {"env.hca_pcie_share", "env.slowdown_margin"})
      EXPECT_EQ(limitOf(profile, metric, {}).severity, Severity::kWarn) << name << " " << metric;
    if (isBoard(profile)) {
      EXPECT_EQ(limitOf(profile, "env.fabric_manager_errors", {}).severity, Severity::kWarn) << name;
    }
    if (name != "t4") {
      EXPECT_EQ(limitOf(profile, "env.remap_banks", {{"spare_rows", "none"}}).severity, Severity::kWarn)
          << name;
    }
    for (const Expectation& e : profile.expectations) EXPECT_NE(e.metric, "env.imex_ready") << name;
  }
}

TEST(ShippedProfiles, RejectAStressTestThatLeavesAGpuIdle) {
  for (const auto& [name, profile] : shippedProfiles()) {
    if (name == "host") continue;  // other processes use the CPU at any time: there it warns
    const Expectation& e = limitOf(profile, "compute.sustained_duty", {});
    EXPECT_EQ(e.severity, Severity::kFail) << name;
    EXPECT_EQ(e.limit, 0.99) << name;
  }
}

TEST(ShippedProfiles, NeverTakeABestShapeFigureAsALimit) {
  const std::map<std::string, double> bestShapes = {{"a100-sxm4-80gb", 271e12},
                                                    {"a100-sxm4-40gb", 271e12},
                                                    {"h100-sxm5-80gb", 794.5e12},
                                                    {"h200-sxm", 794e12},
                                                    {"b200", 1745e12},
                                                    {"gb200", 1822e12},
                                                    {"a100-pcie-80gb", 256.4e12},
                                                    {"h100-pcie-80gb", 499.5e12},
                                                    {"h100-nvl-94gb", 488.5e12},
                                                    {"l40s", 252e12},
                                                    {"l4", 91.4e12}};
  const auto profiles = shippedProfiles();
  for (const auto& [name, best] : bestShapes) {
    for (const Expectation& e : profiles.at(name).expectations) {
      auto dtype = e.where.find("dtype");
      if (dtype == e.where.end() || dtype->second != "bf16") continue;
      EXPECT_LT(floorOf(e, profiles.at(name)), 0.93 * best) << name;
    }
  }
}

/// The model names in a text, as "GB200" and not the "B200" in it.
std::set<std::string> modelsIn(const std::string& text) {
  static const std::regex model("\\b(A100|H100|GH200|H200|GB200|GB300|B200|B300|L40S|L4|T4|RTX PRO 6000)\\b");
  std::set<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), model), end; at != end; ++at) found.insert((*at)[1]);
  return found;
}

TEST(ShippedProfiles, SayWhyTheValueOfAnotherModelHolds) {
  for (const auto& [name, profile] : shippedProfiles()) {
    for (const Expectation& e : profile.expectations) {
      const std::set<std::string> named = modelsIn(e.source);
      bool own = named.empty();
      for (const std::string& model : modelsIn(profile.description)) own = own || named.count(model) > 0;
      const auto says = [&](const char* words) { return e.source.find(words) != std::string::npos; };
      EXPECT_TRUE(own || says("derived, not measured") || says("the same") || says("has the"))
          << name << " " << e.metric << ": " << e.source;
    }
  }
}

TEST(ShippedProfiles, RequireNothingThatIsPhysicallyImpossible) {
  size_t bounded = 0;
  for (const auto& [name, profile] : shippedProfiles()) {
    for (const Expectation& e : profile.expectations) {
      if (name == "host") continue;  // its peaks are those of the machine
      LearnGroup group;
      group.metric = e.metric;
      group.where = e.where;
      if (e.metric == "compute.gemm_throughput") group.peak = "flops." + e.where.at("dtype");
      if (e.metric == "memory.bandwidth") group.peak = "memory_bandwidth";
      const PhysicalLimit limit = physicalLimit(group, profile);
      if (limit.most <= 0 || e.metric == "compute.sustained_throughput" ||
          (e.kind != CheckKind::kMin && floorOf(e, profile) <= 0))
        continue;
      ++bounded;
      EXPECT_LT(e.kind == CheckKind::kMin ? e.limit : floorOf(e, profile), limit.most)
          << name << " " << e.metric << ": " << limit.source;
    }
  }
  EXPECT_GT(bounded, 150u);
}

}  // namespace
}  // namespace muster
