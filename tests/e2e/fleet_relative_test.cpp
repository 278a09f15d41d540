// SPDX-License-Identifier: Apache-2.0
// Limits relative to the fleet: clauses, waivers and `muster verify` go by what the fleet makes of them, and
// a node's own record, which defers them, accepts nothing.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "runner/core/text.h"
#include "tests/e2e/fleet_run.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kNodes = "sim-node-[0000-0003]\n";
constexpr const char* kSlow = "sim-node-0002";

/// Four nodes, of which the third is 8% slower than the others in a limit relative to the fleet.
class FleetRelative : public ::testing::Test {
 protected:
  void run(const std::string& name, double factor, const std::string& severity = "fail",
           const std::vector<std::string>& more = {}) {
    plan_ = run_.write("plan.toml", fmt::format(R"(schema = 1
name = "relative"
sku = "auto"
[[stage]]
name = "gemm"
test = "compute.gemm"
params = {{ size = 8192, dtype = "bf16" }}
[[stage.expect]]
metric = "compute.gemm_throughput"
within = "3%"
of = "fleet"
severity = "{}"
)",
                                                severity))
                .string();
    const auto scene =
        run_.write("scene.toml", readWhole(scenario("h100x8-healthy")) + slowNode("node = 2", factor));
    const auto result =
        runMuster(std::vector<std::string>{"run", plan_, "--simulate", scene.string(), "--nodes", "4",
                                           "--plain", "--out", (run_.path() / name).string()} +
                  more);
    ASSERT_EQ(result.exitCode, 0) << result.out << result.err;
  }
  void slow(const std::vector<std::string>& more = {}) { run("run", 0.92, "fail", more); }
  /// `muster fleet` beside the records, where a delivery has it.
  ProcessResult judge(const std::string& expected = kNodes, const std::vector<std::string>& more = {}) {
    const auto nodes = run_.write("nodes.txt", expected).string();
    return runMuster(std::vector<std::string>{"fleet", records(), "--expect", nodes} + more);
  }
  ProcessResult verify(const std::vector<std::string>& more = {}) {
    const std::string key = (run_.path() / "key").string();
    runMuster({"sign", "--new-key", key});  // once
    fs::remove(fs::path(records()) / "signature.dsse.json");
    EXPECT_EQ(runMuster({"sign", records(), "--key", key}).exitCode, 0);
    return runMuster(std::vector<std::string>{"verify", records(), "--key", key + ".pub", "--plan", plan_} +
                     more);
  }
  std::string writeWaiver(const std::string& reason) {
    return run_
        .write(reason + ".toml", fmt::format("schema = 1\n[[waiver]]\nnode = \"{}\"\nstage = \"gemm\"\n"
                                             "metric = \"compute.gemm_throughput\"\nreason = \"{}\"\n"
                                             "approver = \"supplier\"\nexpires = \"2099-12-31\"\n",
                                             kSlow, reason))
        .string();
  }
  std::string records() { return (run_.path() / "run").string(); }

  FleetRun run_;
  std::string plan_;
};

TEST_F(FleetRelative, ADeliveryWithoutItsFleetIsLeftOpen) {
  slow();
  EXPECT_EQ(judge().exitCode, 1) << "who leaves fleet.json out hides this";
  for (const char* file : {"fleet.json", "fleet.html", "fleet-inputs.json"})
    fs::remove(fs::path(records()) / file);
  const auto result = verify();
  EXPECT_EQ(result.exitCode, 3) << result.out;
  EXPECT_THAT(result.out, HasSubstr("8 check results relative to the other nodes): ask for fleet.json"));
}

TEST_F(FleetRelative, NodesThatEachRanAloneAreLeftOpenAndOneMachineIsNamed) {
  plan_ = plan("cluster.toml");
  for (const char* name : {"a/n0", "b/n1"})
    ASSERT_EQ(runMuster({"run", plan_, "--simulate", scenario("h100x8-cluster-healthy"), "--node-name",
                         std::string(name).substr(2), "--out", records() + "/" + name})
                  .exitCode,
              0);
  EXPECT_THAT(verify().out, AllOf(HasSubstr("no fleet of this directory joins them"),
                                  HasSubstr("the same hardware appears under 2 names")));
  fs::rename(records() + "/b/n1", records() + "/a/n0/n1");
  EXPECT_THAT(verify().out, HasSubstr("the same hardware appears under 2 names")) << "below another run";
  fs::rename(records() + "/a/n0/n1", records() + "/b/n1");
  for (const char* name : {"a", "b"}) {
    const auto nodes = run_.write("nodes.txt", name == std::string("a") ? "n0\n" : "n1\n").string();
    runMuster({"fleet", records() + "/" + name, "--expect", nodes});
  }
  EXPECT_THAT(verify().out, HasSubstr("the same hardware appears under 2 names"))
      << "each in a fleet of its own";
}

TEST_F(FleetRelative, AFleetForEachPartIsNoneOfAll) {
  slow();
  const fs::path all = records(), part = all / "hall";
  fs::create_directories(part);
  fs::rename(all / kSlow, part / kSlow);
  for (const auto& [folder, nodes] : {std::pair(part, fmt::format("{}\n", kSlow)),
                                      std::pair(all, std::string("sim-node-[0000-0001]\nsim-node-0003\n"))}) {
    const auto expected = run_.write("nodes.txt", nodes).string();
    runMuster({"fleet", folder.string(), "--expect", expected});
  }
  const auto result = verify();
  EXPECT_EQ(result.exitCode, 3) << result.out;
  EXPECT_THAT(result.out,
              HasSubstr("no fleet counts them together with all nodes that are compared or connected"));
}

TEST_F(FleetRelative, AFleetForEachPartIsNoneOfAllWhereTheirPlansDiffer) {
  run("fail", 1);
  run("warn", 1, "warn");
  const std::map<std::string, std::vector<std::string>> parts = {{"fail", {"sim-node-0000", "sim-node-0001"}},
                                                                 {"warn", {kSlow, "sim-node-0003"}}};
  for (const auto& [part, nodes] : parts) {
    fs::create_directories(fs::path(records()) / part);
    for (const std::string& node : nodes)
      fs::copy(run_.path() / part / node, fs::path(records()) / part / node, fs::copy_options::recursive);
    const auto expected = run_.write("nodes.txt", join(nodes, "\n")).string();
    ASSERT_EQ(runMuster({"fleet", records() + "/" + part, "--expect", expected}).exitCode, 0);
  }
  verify();  // signs it
  const auto result = runMuster({"verify", records(), "--key", (run_.path() / "key.pub").string()});
  EXPECT_EQ(result.exitCode, 3) << result.out;
  EXPECT_THAT(result.out, HasSubstr("together with all nodes that are compared or connected"));
}

TEST_F(FleetRelative, AFleetOfEarlierRecordsIsNoneOfLaterOnes) {
  run("april", 1);
  run("may", 0.92);
  const fs::path all = records();
  for (const auto& [part, nodes] : std::map<std::string, std::vector<std::string>>{
           {"april", {"sim-node-0000", "sim-node-0001", kSlow, "sim-node-0003"}},
           {"may-a", {"sim-node-0000", "sim-node-0001", "sim-node-0003"}},
           {"may-b", {kSlow}}}) {
    fs::create_directories(all / part);
    for (const std::string& node : nodes)
      fs::copy(run_.path() / part.substr(0, part.find('-')) / node, all / part / node,
               fs::copy_options::recursive);
    runMuster(
        {"fleet", (all / part).string(), "--expect", run_.write("nodes.txt", join(nodes, "\n")).string()});
  }
  EXPECT_THAT(verify().out,
              AllOf(HasSubstr("may-a/sim-node-0000/record.json"), Not(HasSubstr("OPEN     limits     april")),
                    HasSubstr("no fleet counts them together")));
}

TEST_F(FleetRelative, ADeliveryOfAPartOfItsRunIsLeftOpen) {
  run("run", 1);
  fs::remove_all(fs::path(records()) / "sim-node-0003");
  ASSERT_EQ(judge("sim-node-[0000-0002]\n").exitCode, 0);
  const auto result = verify();
  EXPECT_EQ(result.exitCode, 3) << result.out;
  EXPECT_THAT(result.out, HasSubstr("their run had more nodes than the fleet has"));
}

TEST_F(FleetRelative, AnOwnWaiverOfSuchALimitMustBeAgreedTo) {
  const std::string waivers = writeWaiver("known"), others = writeWaiver("other");
  slow({"--waivers", waivers});
  EXPECT_THAT(judge().out, HasSubstr("ACCEPTED WITH CONCESSIONS"));
  const auto alone = verify();
  EXPECT_EQ(alone.exitCode, 3) << alone.out;
  EXPECT_THAT(alone.out, AllOf(HasSubstr("did you agree to them?"), HasSubstr("accepted with concessions")));
  EXPECT_EQ(verify({"--waivers", others}).exitCode, 1);
  const auto agreed = verify({"--waivers", waivers});
  EXPECT_EQ(agreed.exitCode, 0) << agreed.out;
  EXPECT_THAT(agreed.out, HasSubstr("VERIFIED: accepted with concessions"));
}

TEST_F(FleetRelative, AClauseIsMetByWhatTheFleetMakesOfIt) {
  const auto clause =
      run_.write("clause.toml",
                 "schema = 1\nname = \"contract\"\n[[clause]]\nid = \"B\"\nrequirement = \"as "
                 "fast as the others\"\nmetrics = [\"compute.gemm_throughput\"]\n");
  run("run", 1);
  const auto healthy = judge(kNodes, {"--requirements", clause.string()});
  EXPECT_EQ(healthy.exitCode, 0) << healthy.out;
  EXPECT_EQ(verify().exitCode, 0);
  fs::remove_all(records());
  run("run", 0.92, "warn");
  EXPECT_EQ(judge().exitCode, 0) << "it only warns";
  const auto missed = judge(kNodes, {"--requirements", clause.string()});
  EXPECT_EQ(missed.exitCode, 3) << missed.out;
  EXPECT_THAT(missed.out, HasSubstr(fmt::format("clause B is not met on 1 of 4 nodes: {}", kSlow)));
  run("again", 1, "warn");
  fs::copy(run_.path() / "again" / kSlow, fs::path(records()) / "retry", fs::copy_options::recursive);
  EXPECT_EQ(judge(kNodes, {"--requirements", clause.string()}).exitCode, 3) << "nor by running again";
}

TEST_F(FleetRelative, ANodeIsNotAcceptedByRunningAgain) {
  slow();
  ASSERT_EQ(judge().exitCode, 1);
  run("again", 1);
  const fs::path retry = fs::path(records()) / "retry";
  fs::copy(run_.path() / "again" / kSlow, retry, fs::copy_options::recursive);
  const auto result = judge();
  EXPECT_EQ(result.exitCode, 1) << result.out;
  EXPECT_THAT(result.out, HasSubstr(fmt::format("rejected {}: gemm", kSlow)));
  EXPECT_THAT(readWhole(fs::path(records()) / "fleet.json"),
              HasSubstr("after a repair, move the old record away"));
  fs::remove_all(fs::path(records()) / kSlow);
  EXPECT_EQ(judge().exitCode, 0) << "moved away";
  fs::copy(run_.path() / "again" / kSlow, fs::path(records()) / "once-more", fs::copy_options::recursive);
  const auto both = judge();
  EXPECT_EQ(both.exitCode, 0) << "both are well";
  EXPECT_THAT(both.out, HasSubstr("retry/record.json: a copy of once-more/record.json"));
  EXPECT_EQ(verify().exitCode, 0);
}

TEST_F(FleetRelative, ARejectedRecordCountsThoughItsNodeIsNotExpected) {
  const auto plan = run_.write("hard.toml", R"(schema = 1
name = "hard"
sku = "auto"
[[stage]]
name = "gemm"
test = "compute.gemm"
params = { size = 8192, dtype = "bf16" }
expect = [{ metric = "compute.gemm_throughput", min = "650 TFLOP/s" }]
)");
  const auto scene =
      run_.write("scene.toml", readWhole(scenario("h100x8-healthy")) + slowNode("node = 2", 0.9));
  ASSERT_EQ(
      runMuster({"run", plan.string(), "--simulate", scene.string(), "--nodes", "4", "--out", records()})
          .exitCode,
      1);
  plan_ = plan.string();
  ASSERT_EQ(judge("sim-node-[0000-0001]\nsim-node-0003\n").exitCode, 0);
  const auto result = verify();
  EXPECT_EQ(result.exitCode, 1) << result.out;
  EXPECT_THAT(result.out, HasSubstr("VERIFIED: rejected"));
}

}  // namespace
}  // namespace muster::testing
