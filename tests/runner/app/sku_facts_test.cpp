// SPDX-License-Identifier: Apache-2.0
// What a profile takes over for a SKU that none knows: what most healthy nodes say, never what one of them
// says.
#include "runner/app/baseline/sku_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

SkuFacts usualFacts() {
  return {{{"PCI id", "10de:23ff"}, {"peak flops.bf16", "9.8e14"}, {"duration of compute.sustained", "30.0"}},
          102e9,
          ""};
}

/// A fleet of nodes that agree, and a figure of each.
struct SkuFleet {
  explicit SkuFleet(size_t nodes) : facts(nodes, usualFacts()) {
    LearnGroup group;
    for (size_t i = 0; i < nodes; ++i) {
      fleet.input.nodes.push_back({"n" + std::to_string(i), {"gpu0"}, "", false});
      group.figures.push_back({static_cast<int>(i), 0, 3e12, 1});
    }
    fleet.input.groups.push_back(group);
  }

  double agree() {
    const auto memory = agreeOnSku(facts, fleet);
    EXPECT_TRUE(memory.ok()) << memory.error().text();
    return memory.ok() ? *memory : 0;
  }
  std::string refusal() {
    const auto memory = agreeOnSku(facts, fleet);
    EXPECT_FALSE(memory.ok());
    return memory.ok() ? "" : memory.error().message;
  }

  std::vector<SkuFacts> facts;
  FleetToLearn fleet;
};

/// How one node differs from the others, and what is said of it.
struct OddNode {
  std::function<void(SkuFacts&)> make;
  std::string why;
};

const std::vector<OddNode> kOddNodes = {
    {[](SkuFacts& f) { f.stated["PCI id"] = "10de:0001"; }, "PCI id 10de:0001; 4 of 5 nodes have 10de:23ff"},
    {[](SkuFacts& f) { f.stated["peak flops.bf16"] = "7.8e14"; },
     "peak flops.bf16 7.8e14; 4 of 5 nodes have 9.8e14"},
    {[](SkuFacts& f) { f.stated["duration of compute.sustained"] = "1.0"; },
     "duration of compute.sustained 1.0; 4 of 5 nodes have 30.0"},
    {[](SkuFacts& f) { f.stated["peak flops.fp4"] = "1"; }, "peak flops.fp4 1; 4 of 5 nodes have none"},
    {[](SkuFacts& f) { f.memory = 40e9; }, "memory 40 GB; 4 of 5 nodes have 102 GB"},
    {[](SkuFacts& f) { f.unreadable = "inventory.devices[0].kind: is no text"; },
     "inventory.devices[0].kind: is no text"},
};

TEST(SkuFacts, LeavesOutTheNodeThatDiffersEvenWhereItIsTheFirst) {
  for (const OddNode& odd : kOddNodes) {
    SkuFleet made(5);
    odd.make(made.facts[0]);
    EXPECT_EQ(made.agree(), 102e9) << odd.why;
    EXPECT_TRUE(made.fleet.input.nodes[0].misfit);
    EXPECT_EQ(made.fleet.input.nodes[0].sick.substr(0, odd.why.size()), odd.why);
    for (size_t i = 1; i < 5; ++i) EXPECT_EQ(made.fleet.input.nodes[i].sick, "") << odd.why;
    EXPECT_EQ(made.fleet.example, 1u) << odd.why;
    EXPECT_EQ(made.fleet.input.groups.at(0).figures.size(), 4u) << odd.why;
  }
}

TEST(SkuFacts, OfRecordsWithOtherStagesAreThoseOfOneNode) {
  SkuFacts facts;
  facts.add({{{"size of compute.gemm", "8192"}}, 102e9, ""});
  facts.add({{{"op of collective.sweep", "\"all_reduce\""}}, 0, ""});
  EXPECT_EQ(facts.stated.size(), 2u);
  EXPECT_EQ(facts.memory, 102e9);
}

TEST(SkuFacts, RefusesWhereNoneHasAMajorityAndSaysWhatDiffers) {
  for (const OddNode& odd : kOddNodes) {
    SkuFleet made(4);
    for (const size_t i : {0, 1}) odd.make(made.facts[i]);
    if (!made.facts[0].unreadable.empty()) continue;
    EXPECT_THAT(made.refusal(), AllOf(HasSubstr(": no value has a majority: "), HasSubstr("--base FILE")))
        << odd.why;
  }
}

TEST(SkuFacts, AsksHealthyNodesOnly) {
  SkuFleet made(5);
  for (const size_t i : {0, 1, 2}) {
    made.fleet.input.nodes[i].sick = "memory.bandwidth fail";
    made.facts[i].stated["PCI id"] = "10de:0001";
  }
  made.agree();
  EXPECT_EQ(made.fleet.example, 3u);
  made.fleet.input.nodes[3].sick = made.fleet.input.nodes[4].sick = "memory.bandwidth fail";
  EXPECT_THAT(made.refusal(), HasSubstr("no healthy node: n0: "));
}

TEST(SkuFacts, DriversMayKeepMemoryForThemselves) {
  SkuFleet made(5);
  for (size_t i = 0; i < 5; ++i) made.facts[i].memory += 5e8 * static_cast<double>(i);
  EXPECT_EQ(made.agree(), 103e9) << "that of the node in the middle";
  for (const LearnNode& node : made.fleet.input.nodes) EXPECT_EQ(node.sick, "");
}

TEST(SkuFacts, ANodeThatDidNotRunATestIsUsedButIsNoExample) {
  SkuFleet made(5);
  made.facts[0].stated.erase("duration of compute.sustained");
  made.agree();
  EXPECT_EQ(made.fleet.input.nodes[0].sick, "");
  EXPECT_EQ(made.fleet.example, 1u);
}

}  // namespace
}  // namespace muster
