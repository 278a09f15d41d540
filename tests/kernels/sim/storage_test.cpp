// SPDX-License-Identifier: Apache-2.0
// Simulated storage: rates, faults, and that it repeats itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/sim/sim_storage.h"
#include "tests/kernels/sim/small_scenario.h"

namespace muster::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string storage(const std::string& more = "noise = 0\nspread = 0\n") {
  return "[storage]\nread_bandwidth = \"6 GB/s\"\nwrite_bandwidth = \"3 GB/s\"\nread_operations = 600000\n"
         "write_operations = 150000\nfile_rate = 20000\n" +
         more;
}

std::unique_ptr<SimulatedStorage> openStorage(const std::string& more = "noise = 0\nspread = 0\n",
                                              int node = 0) {
  return makeStorage(smallScenario(storage(more)), node, 7, 0);
}

std::string problemOf(const std::string& text, int nodes = 0) {
  const auto scenario = parseScenario(smallScenarioText(text), "s.toml", nodes);
  return scenario.ok() ? "" : scenario.error().text();
}

TEST(SimStorage, ReachesTheScenariosRatesAndPassesItsTime) {
  const auto disk = openStorage();
  const StorageFigure sequential = disk->run({false, false, 1'000'000, 4, 10});
  EXPECT_DOUBLE_EQ(sequential.bandwidth, 6e9);
  EXPECT_DOUBLE_EQ(sequential.operations, 6000);
  EXPECT_DOUBLE_EQ(sequential.latencyP50, 4 / 6000.0);
  EXPECT_DOUBLE_EQ(disk->now(), 10);
  EXPECT_DOUBLE_EQ(disk->run({true, true, 4000, 4, 10}).operations, 150000);
  EXPECT_DOUBLE_EQ(disk->run({true, true, 1'000'000, 4, 10}).bandwidth, 3e9)
      << "large blocks are limited by bandwidth";
  EXPECT_DOUBLE_EQ(disk->loadFiles(40000, 1000), 20000);
  EXPECT_DOUBLE_EQ(disk->now(), 32);
}

TEST(SimStorage, IsSlowOnTheNodeAndAtTheTimeOfTheFault) {
  const std::string fault =
      "noise = 0\nspread = 0\n[[storage.fault]]\nkind = \"slow\"\nnode = 1\nfactor = 0.5\nfrom = 10\nuntil = "
      "20\n";
  EXPECT_DOUBLE_EQ(openStorage(fault)->run({}).bandwidth, 6e9);
  const auto disk = openStorage(fault, 1);
  EXPECT_DOUBLE_EQ(disk->run({}).bandwidth, 6e9);
  EXPECT_DOUBLE_EQ(disk->run({}).bandwidth, 3e9);
  EXPECT_DOUBLE_EQ(disk->run({}).bandwidth, 6e9);
}

TEST(SimStorage, RepeatsItselfAndDiffersBetweenNodes) {
  const double rate = openStorage("")->run({}).bandwidth;
  EXPECT_EQ(openStorage("")->run({}).bandwidth, rate);
  EXPECT_NE(openStorage("", 1)->run({}).bandwidth, rate);
}

TEST(SimStorage, TellsNodesApart) {
  EXPECT_THAT(openStorage("[[storage.fault]]\nkind = \"apart\"\nnode = 3\n")->nodesApart(), ElementsAre(3));
}

TEST(SimStorage, IsMissingWhereTheScenarioHasNone) {
  EXPECT_EQ(makeStorage(smallScenario(), 0, 7, 0), nullptr);
}

TEST(SimStorage, NamesMistakes) {
  EXPECT_THAT(problemOf("[storage]\nread_bandwidth = \"6 GB/s\"\n"), HasSubstr("write_bandwidth"));
  EXPECT_THAT(problemOf(storage("[[storage.fault]]\nkind = \"slow\"\n")), HasSubstr("factor"));
  EXPECT_THAT(problemOf(storage("[[storage.fault]]\nkind = \"apart\"\n")), HasSubstr("node"));
  EXPECT_THAT(problemOf(storage("[[storage.fault]]\nkind = \"broken\"\n")), HasSubstr("slow"));
  EXPECT_THAT(problemOf(storage("[[storage.fault]]\nkind = \"slow\"\nfactor = 0.5\nfrom = 2\nuntil = 1\n")),
              HasSubstr("later than `from`"));
  EXPECT_THAT(problemOf(storage("[[storage.fault]]\nkind = \"apart\"\nnode = 4\n"), 4), HasSubstr("node"));
  EXPECT_EQ(problemOf(storage("[[storage.fault]]\nkind = \"apart\"\nnode = 3\n"), 4), "");
}

}  // namespace
}  // namespace muster::sim
