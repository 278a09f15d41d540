// SPDX-License-Identifier: Apache-2.0
// `muster fleet` over records of real simulated runs, as a user would call it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>

#include "tests/e2e/muster.h"

namespace muster::testing {
namespace {

using ::testing::HasSubstr;

/// Runs `count` simulated nodes once for all tests of this file.
const std::filesystem::path& healthyNodes() {
  static const TempDir folder;
  static const bool ran = [] {
    const auto result = runMuster({"run", plan("node-quick.toml"), "--simulate", scenario("h100x8-healthy"),
                                   "--nodes", "4", "--out", (folder.path() / "run").string()});
    EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
    return true;
  }();
  static const std::filesystem::path run = folder.path() / "run";
  return ran ? run : folder.path();
}

/// A copy of the records of those nodes.
class Fleet : public ::testing::Test {
 protected:
  Fleet() {
    for (int i = 0; i < 4; ++i) {
      const std::string name = "sim-node-000" + std::to_string(i);
      std::filesystem::create_directories(run() / name);
      std::filesystem::copy_file(healthyNodes() / name / "record.json", run() / name / "record.json");
    }
  }
  [[nodiscard]] std::filesystem::path run() const { return folder_.path() / "run"; }
  [[nodiscard]] std::filesystem::path out() const { return folder_.path() / "out"; }

  ProcessResult fleet(const std::string& nodes, const std::vector<std::string>& more = {}) {
    const auto file = folder_.write("nodes.txt", nodes);
    return runMuster(std::vector<std::string>{"fleet", run().string(), "--expect", file.string(), "--out",
                                              out().string()} +
                     more);
  }
  Json fleetJson() { return Json::parse(readWhole(out() / "fleet.json")); }
  TempDir folder_;
};

/// In a shared folder such as /tmp anybody can leave a file that says that all below is a Slurm run.
TEST_F(Fleet, IsNoSlurmRunByAFileThatAnotherUserLeftAbove) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  constexpr uid_t kStranger = 12345;
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(01777));
  const auto manifest = folder_.write("slurm.json", "{}");
  ASSERT_EQ(chown(manifest.c_str(), kStranger, kStranger), 0);
  EXPECT_EQ(fleet("sim-node-[0000-0003]\n").exitCode, 0);
  ASSERT_EQ(chown(manifest.c_str(), 0, 0), 0);
  EXPECT_NE(fleet("sim-node-[0000-0003]\n").exitCode, 0) << "one of the folder's own owner counts";
}

TEST_F(Fleet, ListsOfHostsAreBoundedTogether) {
  const auto many = fleet("a[0-65535]\nb0\n");
  EXPECT_EQ(many.exitCode, 2);
  EXPECT_NE(many.err.find("names more than 65536 nodes"), std::string::npos) << many.err;
  std::string racks;
  for (int i = 0; i < 9; ++i) racks += "rack" + std::to_string(i) + ": a[0-65535]\n";
  const auto members =
      fleet("sim-node-[0000-0003]\n", {"--topology", folder_.write("racks.conf", racks).string()});
  EXPECT_EQ(members.exitCode, 2);
  EXPECT_NE(members.err.find("racks.conf:9"), std::string::npos) << members.err;
}

TEST_F(Fleet, AcceptsHealthyNodesAndWritesTheSameBytesTwice) {
  const auto result = fleet("sim-node-[0000-0003]\n");
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("SIMULATED ACCEPTED"));
  const std::string first = readWhole(out() / "fleet.json");
  EXPECT_EQ(fleetJson()["coverage"]["states"]["accepted"], 4);
  EXPECT_EQ(fleet("sim-node-[0000-0003]\n").exitCode, 0);
  EXPECT_EQ(readWhole(out() / "fleet.json"), first);
  EXPECT_THAT(readWhole(out() / "fleet.html"), HasSubstr("SIMULATED"));
}

TEST_F(Fleet, IsIncompleteWithMissingAndDownNodes) {
  const auto result = fleet("# the fleet\nsim-node-[0000-0004]\nsim-node-0005 down Not responding\n");
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("missing sim-node-0004"));
  EXPECT_THAT(result.out, HasSubstr("down sim-node-0005: down Not responding"));
}

TEST_F(Fleet, RejectsASickNodeAndNamesItsDevice) {
  std::filesystem::remove_all(run() / "sim-node-0002");
  const auto sick = runMuster({"run", plan("node-quick.toml"), "--simulate", scenario("h100x8-one-slow-gpu"),
                               "--node-name", "sim-node-0002", "--out", (run() / "sim-node-0002").string()});
  ASSERT_EQ(sick.exitCode, 1) << sick.out << sick.err;
  const auto result = fleet("sim-node-[0000-0003]\n");
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("rejected sim-node-0002"));
  bool device = false;
  const Json written = fleetJson();
  for (const Json& suspect : written["suspects"])
    device = device || (suspect["kind"] == "device" && suspect["node"] == "sim-node-0002" &&
                        suspect.contains("serial"));
  EXPECT_TRUE(device) << written["suspects"].dump(1);
}

/// What a plan allows is no finding: the GPU was slow once, and its stage passed at the second attempt.
TEST_F(Fleet, AcceptsAFlakyStageWhereThePlanAllowsIt) {
  folder_.write("healthy.toml", readWhole(scenario("h100x8-healthy")));
  const auto slow = folder_.write(
      "slow.toml",
      "schema = 1\nname = \"slow-once\"\ninclude = [\"healthy.toml\"]\n[[fault]]\nkind = \"slow\"\n"
      "node = 0\ndevice = 3\nfactor = 0.5\nuntil = \"5s\"\n");
  for (const bool isAllowed : {false, true}) {
    const auto flaky = folder_.write(
        "flaky.toml", std::string("schema = 1\nname = \"flaky\"\n[[stage]]\nname = \"gemm\"\n"
                                  "test = \"compute.gemm\"\nparams = { size = 8192, dtype = \"bf16\" }\n"
                                  "attempts = 3\n") +
                          (isAllowed ? "allow_flaky = true\n" : "") +
                          "[[stage]]\nname = \"after\"\ntest = \"compute.gemm\"\nneeds = [\"gemm\"]\n"
                          "params = { size = 8192, dtype = \"bf16\" }\n");
    std::filesystem::remove_all(run());
    const auto ran = runMuster(
        {"run", flaky.string(), "--simulate", slow.string(), "--nodes", "2", "--out", run().string()});
    ASSERT_EQ(ran.exitCode, isAllowed ? 0 : 1) << ran.out << ran.err;
    const auto result = fleet("sim-node-[0000-0001]\n");
    EXPECT_EQ(result.exitCode, isAllowed ? 0 : 1) << result.out << result.err;
  }
}

constexpr const char* kTwiceTriedGemm =
    "schema = 1\nname = \"flaky\"\n[[stage]]\nname = \"gemm\"\ntest = \"compute.gemm\"\n"
    "params = { size = 8192, dtype = \"bf16\" }\nattempts = 3\n";
constexpr const char* kSlowOnce =
    "[[fault]]\nkind = \"slow\"\nnode = 0\ndevice = 3\nfactor = 0.5\nuntil = \"3s\"\nops = [\"gemm\"]\n";

/// The stage's worst outcome is the error; its flaky check rejects all the same, for whoever reads it.
TEST_F(Fleet, AndReportRejectForAFlakeBesideAnErrorAsTheRunDid) {
  folder_.write("healthy.toml", readWhole(scenario("h100x8-healthy")));
  const auto faults = folder_.write(
      "faults.toml", std::string("schema = 1\nname = \"both\"\ninclude = [\"healthy.toml\"]\n") + kSlowOnce +
                         "[[fault]]\nkind = \"crash\"\nnode = 0\ndevice = 5\nat = \"1s\"\n");
  const auto plan = folder_.write("flaky.toml", kTwiceTriedGemm);
  std::filesystem::remove_all(run());
  const auto ran = runMuster(
      {"run", plan.string(), "--simulate", faults.string(), "--nodes", "2", "--out", run().string()});
  ASSERT_EQ(ran.exitCode, 1) << ran.out << ran.err;
  ASSERT_THAT(ran.out, AllOf(HasSubstr("flaky: they failed"), HasSubstr("produced no result")));
  const auto report = runMuster({"report", (run() / "sim-node-0000" / "record.json").string()});
  EXPECT_EQ(report.exitCode, 1) << report.out << report.err;
  EXPECT_EQ(fleet("sim-node-[0000-0001]\n").exitCode, 1);
}

TEST_F(Fleet, RejectsNobodyForAFlakeThatThePlanAllowsBesideOneOfTheGroup) {
  for (const char* name : {"h100x8-healthy", "h100x8-cluster-healthy"})
    folder_.write(name + std::string(".toml"), readWhole(scenario(name)));
  const auto faults = folder_.write(
      "faults.toml",
      std::string("schema = 1\nname = \"both\"\ninclude = [\"h100x8-cluster-healthy.toml\"]\n") + kSlowOnce +
          "[[fault]]\nkind = \"slow_nic\"\nnode = 2\nrail = 3\nfactor = 0.2\nfrom = \"1s\"\n"
          "until = \"21.5s\"\n");
  const auto plan = folder_.write(
      "flaky.toml",
      std::string(kTwiceTriedGemm) +
          "allow_flaky = true\n[[stage]]\nname = \"all-reduce\"\ntest = \"collective.sweep\"\n"
          "scope = \"cluster\"\nattempts = 3\nparams = { op = \"all_reduce\", dtype = \"bf16\", "
          "from = \"1 MiB\", to = \"4 GiB\", factor = 4.0, iterations = 10, fabric = \"auto\" }\n"
          "expect = [ { metric = \"collective.large_message_bus_bandwidth\", of_peak = \"60%\", "
          "source = \"x\" } ]\n");
  std::filesystem::remove_all(run());
  const auto ran = runMuster(
      {"run", plan.string(), "--simulate", faults.string(), "--nodes", "4", "--out", run().string()});
  ASSERT_EQ(ran.exitCode, 1) << ran.out << ran.err;
  const auto result = fleet("sim-node-[0000-0003]\n");
  EXPECT_THAT(result.out, Not(HasSubstr("rejected  sim-node"))) << result.err;
  EXPECT_EQ(fleetJson()["coverage"]["states"]["affected"], 4) << result.out;
}

TEST_F(Fleet, DoesNotRejectTheOneNodeThatHasAllGpus) {
  folder_.write("healthy.toml", readWhole(scenario("h100x8-healthy")));
  std::string text = "schema = 1\nname = \"most\"\ninclude = [\"healthy.toml\"]\n";
  for (const char* node : {"0", "1"})
    text += std::string("[[fault]]\nkind = \"missing\"\nnode = ") + node + "\ndevice = 7\n";
  const auto faults = folder_.write("faults.toml", text);
  const auto plan = folder_.write("gemm.toml", kTwiceTriedGemm);
  std::filesystem::remove_all(run());
  runMuster({"run", plan.string(), "--simulate", faults.string(), "--nodes", "3", "--out", run().string()});
  const auto result = fleet("sim-node-[0000-0002]\n");
  EXPECT_EQ(fleetJson()["coverage"]["states"]["rejected"], 2) << result.out;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("sim-node-0002 has 8"), HasSubstr("those that passed do not agree")));
}

TEST_F(Fleet, QuarantinesATruncatedRecordAndJudgesTheRest) {
  const std::string whole = readWhole(run() / "sim-node-0001/record.json");
  folder_.write("run/sim-node-0001/record.json", whole.substr(0, whole.size() / 2));
  const auto result = fleet("sim-node-[0000-0003]\n");
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("truncated: the JSON ends after"));
  EXPECT_EQ(fleetJson()["coverage"]["states"]["accepted"], 3);
}

TEST_F(Fleet, WantsToKnowWhomToExpect) {
  const auto result = runMuster({"fleet", run().string()});
  EXPECT_EQ(result.exitCode, 2);
  EXPECT_THAT(result.err, HasSubstr("--expect FILE"));
  EXPECT_EQ(fleet("").exitCode, 2);
  EXPECT_EQ(fleet("sim-node-[0000-\n").exitCode, 2);
  const auto twice = fleet("sim-node-0000\nsim-node-0000\n");
  EXPECT_EQ(twice.exitCode, 2);
  EXPECT_THAT(twice.err, HasSubstr("listed twice"));
  const auto state = fleet("sim-node-0000 tired\n");
  EXPECT_EQ(state.exitCode, 2);
  EXPECT_THAT(state.err, HasSubstr("nodes.txt:1"));
  EXPECT_EQ(runMuster({"fleet", "/nowhere", "--expect", (folder_.path() / "nodes.txt").string()}).exitCode,
            2);
}

TEST_F(Fleet, HoldsThePlanAgainstTheRecords) {
  const auto same = fleet("sim-node-[0000-0003]\n", {"--plan", plan("node-quick.toml")});
  EXPECT_EQ(same.exitCode, 0) << same.out << same.err;
  const auto other = fleet("sim-node-[0000-0003]\n", {"--plan", plan("node-full.toml")});
  EXPECT_EQ(other.exitCode, 3) << other.out;
  EXPECT_THAT(other.out, HasSubstr("of another plan"));
}

TEST_F(Fleet, ReadsATopology) {
  const auto good = folder_.write("topology.conf",
                                  "SwitchName=leaf1 Nodes=sim-node-[0000-0001]\nSwitchName=leaf2 "
                                  "Nodes=sim-node-[0002-0003]\nSwitchName=spine Switches=leaf[1-2]\n");
  EXPECT_EQ(fleet("sim-node-[0000-0003]\n", {"--topology", good.string()}).exitCode, 0);
  EXPECT_EQ(fleetJson()["topology_from"], "topology.conf");
  const auto bad = folder_.write("bad.conf", "what is this\n");
  const auto result = fleet("sim-node-[0000-0003]\n", {"--topology", bad.string()});
  EXPECT_EQ(result.exitCode, 2);
  EXPECT_THAT(result.err, HasSubstr("bad.conf:1"));
}

}  // namespace
}  // namespace muster::testing
