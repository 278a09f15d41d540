// SPDX-License-Identifier: Apache-2.0
// Scenario files: what is read, and that every mistake is named at its place.
#include "kernels/sim/scenario/scenario.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/kernels/sim/small_scenario.h"
#include "tests/support/process.h"

namespace muster::sim {
namespace {

using ::testing::HasSubstr;

void expectMistake(const std::string& more, const std::string& part) {
  auto scenario = parseScenario(smallScenarioText(more), "s.toml");
  ASSERT_FALSE(scenario.ok()) << more;
  EXPECT_EQ(scenario.error().code, ErrorCode::kUsage);
  EXPECT_THAT(scenario.error().text(), HasSubstr(part));
}

TEST(Scenario, ReadsModelFiguresAndPeaks) {
  auto scenario = smallScenario("[climate]\nload_temperature = \"70 degC\"\n[node.host]\nkernel = \"6.1\"\n");
  EXPECT_EQ(scenario->model.count, 2);
  EXPECT_DOUBLE_EQ(scenario->model.peaks.at("flops.bf16"), 2e12);
  EXPECT_DOUBLE_EQ(scenario->figures.gemm.at(Dtype::kBf16), 1e12);
  EXPECT_DOUBLE_EQ(scenario->figures.memory.at(MemoryOp::kCopy), 1e9);
  EXPECT_DOUBLE_EQ(scenario->climate.loadTemperature, 70);
  EXPECT_EQ(scenario->node["host"]["kernel"], "6.1");
}

TEST(Scenario, ReadsEachKindOfFault) {
  auto scenario = smallScenario(R"(
[[fault]]
kind = "slow"
device = 1
factor = 0.8
ops = ["gemm"]
[[fault]]
kind = "throttle"
device = 0
factor = "70%"
from = "2s"
until = "1m"
reason = "thermal"
[[fault]]
kind = "ecc"
device = 0
node = 3
at = "5s"
corrected = 4
uncorrected = 1
[[fault]]
kind = "corruption"
device = 0
every = 3
offset = "4 KiB"
bit = 7
[[fault]]
kind = "hang"
device = 0
ops = ["memory", "health"]
[[fault]]
kind = "crash"
device = 0
[[fault]]
kind = "missing"
device = 1
[[fault]]
kind = "xid"
device = 0
xid = 79
)");
  ASSERT_EQ(scenario->faults.size(), 8u);
  EXPECT_EQ(scenario->faults[0].ops, std::vector<Work>{Work::kGemm});
  EXPECT_DOUBLE_EQ(scenario->faults[1].until, 60);
  EXPECT_EQ(scenario->faults[2].node, 3);
  EXPECT_EQ(scenario->faults[3].offset, 4096u);
  EXPECT_EQ(scenario->faults[7].xid, 79);
}

TEST(Scenario, NamesTheNearestFaultWorkAndKey) {
  expectMistake("[[fault]]\nkind = \"slwo\"\ndevice = 0\n", "found \"slwo\"; did you mean \"slow\"?");
  expectMistake("[[fault]]\nkind = \"hang\"\ndevice = 0\nops = [\"gem\"]\n", "did you mean \"gemm\"?");
  expectMistake("[[fault]]\nkind = \"hang\"\ndevcie = 0\ndevice = 0\n", "did you mean \"device\"?");
  expectMistake("[climate]\nidle_temprature = 3\n", "did you mean \"idle_temperature\"?");
}

TEST(Scenario, RefusesAKeyOfAnotherKindOfFault) {
  expectMistake("[[fault]]\nkind = \"missing\"\ndevice = 0\nfactor = 0.5\n", "unknown key \"factor\"");
}

TEST(Scenario, RefusesFaultsOutOfRange) {
  expectMistake("[[fault]]\nkind = \"missing\"\ndevice = 2\n",
                "`device` must be a whole number, 0 to 1, found 2");
  expectMistake("[[fault]]\nkind = \"slow\"\ndevice = 0\nfactor = 1.5\n", "`factor` must be");
  expectMistake("[[fault]]\nkind = \"slow\"\ndevice = 0\n", "`factor` is missing");
  expectMistake("[[fault]]\nkind = \"throttle\"\ndevice = 0\nfactor = 0.5\nfrom = 9\nuntil = 3\n",
                "later than `from`");
  expectMistake("[[fault]]\nkind = \"throttle\"\ndevice = 0\nfactor = 0.5\nreason = \"heat\"\n",
                "`reason` must be one of");
  expectMistake("[[fault]]\nkind = \"ecc\"\ndevice = 0\n", "an ecc fault needs");
  expectMistake("[[fault]]\nkind = \"ecc\"\ndevice = 0\ncorrected = 1\nmemory = \"hbm\"\n",
                "`memory` must be one of dram, sram");
  expectMistake("[[fault]]\nkind = \"xid\"\ndevice = 0\n", "`xid` is missing");
}

/// What a run of `nodes` nodes says of a scenario whose fault has these lines.
std::string saidOf(const std::string& fault, int nodes) {
  constexpr const char* kNics = R"(
[network]
intra_bandwidth = "100 GB/s"
rail_bandwidth = "10 GB/s"
rails = 2
nodes_per_leaf = 2
[rdma]
count = 2
line_rate = "10 GB/s"
bandwidth = "9 GB/s"
)";
  auto scenario = parseScenario(smallScenarioText(kNics + fault), "s.toml", nodes);
  if (scenario.ok()) return "";
  EXPECT_EQ(scenario.error().code, ErrorCode::kUsage) << fault;
  return scenario.error().text();
}

struct FaultyPart {
  const char* lines;  ///< of a fault whose last key may name part number `%`
  int most;           ///< parts of that kind that a run of 5 nodes has
};

class FaultBeyondTheRun : public ::testing::TestWithParam<FaultyPart> {};

TEST_P(FaultBeyondTheRun, IsRefusedAtItsPlaceAndTheLastPartIsNot) {
  const auto [lines, most] = GetParam();
  EXPECT_EQ(saidOf(fmt::format(fmt::runtime(lines), most - 1), 5), "") << lines;
  for (const int part : {most, most + 1, most + 100}) {
    const std::string text = fmt::format(fmt::runtime(lines), part);
    const std::string said = saidOf(text, 5);
    const std::string last = text.substr(text.rfind('\n', text.size() - 2) + 1);
    const std::string key = last.substr(0, last.find(' '));
    EXPECT_THAT(said, ::testing::StartsWith("s.toml:")) << text;
    EXPECT_THAT(said, HasSubstr("`" + key + "`")) << text;
    EXPECT_THAT(said, HasSubstr(std::to_string(part))) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, FaultBeyondTheRun,
    ::testing::Values(
        FaultyPart{"[[fault]]\nkind = \"slow\"\ndevice = 0\nfactor = 0.5\nnode = {}\n", 5},
        FaultyPart{"[[fault]]\nkind = \"throttle\"\ndevice = 0\nfactor = 0.5\nnode = {}\n", 5},
        FaultyPart{"[[fault]]\nkind = \"ecc\"\ndevice = 0\nuncorrected = 1\nnode = {}\n", 5},
        FaultyPart{"[[fault]]\nkind = \"corruption\"\ndevice = 0\nnode = {}\n", 5},
        FaultyPart{"[[fault]]\nkind = \"hang\"\ndevice = 0\nnode = {}\n", 5},
        FaultyPart{"[[fault]]\nkind = \"crash\"\ndevice = 0\nnode = {}\n", 5},
        FaultyPart{"[[fault]]\nkind = \"missing\"\ndevice = 0\nnode = {}\n", 5},
        FaultyPart{"[[fault]]\nkind = \"xid\"\ndevice = 0\nxid = 79\nnode = {}\n", 5},
        FaultyPart{"[[fault]]\nkind = \"crash\"\ndevice = {}\n", 2},
        FaultyPart{"[[fault]]\nkind = \"slow_link\"\nfactor = 0.5\npeer_node = 0\nnode = {}\n", 5},
        FaultyPart{"[[fault]]\nkind = \"slow_link\"\nfactor = 0.5\nnode = 0\npeer_node = {}\n", 5},
        FaultyPart{"[[fault]]\nkind = \"slow_link\"\nfactor = 0.5\ndevice = 0\npeer_device = {}\n", 2},
        FaultyPart{"[[fault]]\nkind = \"slow_nic\"\nfactor = 0.5\nnode = {}\n", 5},
        FaultyPart{"[[fault]]\nkind = \"slow_nic\"\nfactor = 0.5\nnode = 0\nrail = {}\n", 2},
        FaultyPart{"[[fault]]\nkind = \"flapping_nic\"\nperiod = 1\ndown = 0.1\nnode = {}\n", 5},
        FaultyPart{"[[fault]]\nkind = \"flapping_nic\"\nperiod = 1\ndown = 0.1\nnode = 0\nrail = {}\n", 2},
        FaultyPart{"[[fault]]\nkind = \"slow_uplink\"\nfactor = 0.5\nleaf = {}\n", 3},
        FaultyPart{"[[rdma.fault]]\nkind = \"link_down\"\nhca = 0\nnode = {}\n", 5},
        FaultyPart{"[[rdma.fault]]\nkind = \"slow\"\nfactor = 0.5\nhca = {}\n", 2}));

TEST(Scenario, SaysHowManyNodesTheRunOfAFaultBeyondThemHas) {
  EXPECT_EQ(
      saidOf("[[fault]]\nkind = \"crash\"\ndevice = 0\nnode = 3\n", 1),
      "s.toml:39:1: this fault is on node 3, and the run has 1 node (numbered from 0); change `node`, or "
      "simulate more nodes with --nodes");
  EXPECT_EQ(
      saidOf("[[fault]]\nkind = \"slow_uplink\"\nfactor = 0.5\nleaf = 3\n", 5),
      "s.toml:39:1: this fault is on leaf 3, and the 5 nodes of this run are on 3 leaves (2 on each leaf); "
      "change `leaf`, or simulate more nodes with --nodes");
  EXPECT_EQ(saidOf("[[fault]]\nkind = \"crash\"\ndevice = 0\nnode = 3\n", 0), "")
      << "the number is not known";
}

TEST(Scenario, SaysThePlaceOfAMistake) {
  auto scenario = parseScenario("schema = 1\nname = \"x\"\nfoo = 2\n", "dir/s.toml");
  ASSERT_FALSE(scenario.ok());
  EXPECT_THAT(scenario.error().text(), HasSubstr("dir/s.toml:3:1: unknown key \"foo\""));
  EXPECT_THAT(scenario.error().text(), HasSubstr("`devices` is missing"));
  EXPECT_THAT(scenario.error().text(), HasSubstr("`figures` is missing"));
}

TEST(Scenario, IsLaidOverWhatItIncludes) {
  const testing::TempDir dir;
  const std::string fault = "[[fault]]\nkind = \"crash\"\ndevice = ";
  dir.write("base.toml", smallScenarioText(fault + "0\n"));
  const std::string own = "schema = 1\nname = \"more\"\ninclude = [\"base.toml\"]\n[devices]\ncount = 1\n";
  auto scenario = loadScenario(dir.write("more.toml", own + fault + "0\nnode = 1\n").string());
  ASSERT_TRUE(scenario.ok()) << scenario.error().text();
  EXPECT_EQ(scenario->name, "more");
  EXPECT_EQ(scenario->model.count, 1);
  EXPECT_DOUBLE_EQ(scenario->figures.gemm.at(Dtype::kBf16), 1e12);
  ASSERT_EQ(scenario->faults.size(), 2u) << "the base's own comes first";
  EXPECT_EQ(scenario->faults[1].node, 1);
  EXPECT_THAT(loadScenario(dir.write("wrong.toml", own + fault + "1\n").string()).error().text(),
              HasSubstr("wrong.toml:"));
}

TEST(Scenario, RefusesAnotherSchema) {
  EXPECT_THAT(parseScenario("schema = 2\nname = \"x\"\n", "s").error().text(),
              HasSubstr("schema 1, found 2"));
}

TEST(Scenario, RefusesAMissingFileAndAFolder) {
  EXPECT_THAT(loadScenario("/nonexistent/s.toml").error().text(), HasSubstr("/nonexistent/s.toml"));
  EXPECT_FALSE(loadScenario("/tmp").ok());
}

TEST(Scenario, EveryShippedScenarioIsGood) {
  int found = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(testing::sourceDir() / "plans" / "scenarios")) {
    auto scenario = loadScenario(entry.path().string());
    ASSERT_TRUE(scenario.ok()) << scenario.error().text();
    EXPECT_EQ(scenario->name, entry.path().stem().string());
    EXPECT_FALSE(scenario->description.empty());
    ++found;
  }
  EXPECT_GE(found, 11);
}

}  // namespace
}  // namespace muster::sim
