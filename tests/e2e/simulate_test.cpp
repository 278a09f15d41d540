// SPDX-License-Identifier: Apache-2.0
// Whole runs on simulated GPUs: a healthy node is accepted, each planted fault is named.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <set>

#include "tests/e2e/muster.h"

namespace muster::testing {
namespace {

ProcessResult simulate(const std::string& name, const std::filesystem::path& out,
                       const std::vector<std::string>& more = {}) {
  return runMuster(std::vector<std::string>{"run", plan("node-quick.toml"), "--simulate", scenario(name),
                                            "--out", out.string()} +
                   more);
}

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Simulate, AcceptsAHealthyNode) {
  TempDir dir;
  const auto result = simulate("h100x8-healthy", dir.path() / "run");
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  const Record record = recordIn(dir.path() / "run");
  EXPECT_EQ(record.acceptance, Acceptance::kAccepted);
  EXPECT_EQ(record.profile.name, "h100-sxm5-80gb");
  EXPECT_TRUE(record.accounting.balanced());
  EXPECT_GT(record.accounting.of(Outcome::kPass), 50u);
  EXPECT_TRUE(verdictsOf(record, Outcome::kUnjudged).empty());
}

TEST(Simulate, MarksEverythingSimulated) {
  TempDir dir;
  const auto result = simulate("h100x8-healthy", dir.path() / "run");
  EXPECT_TRUE(mentions(result.out, "SIMULATED")) << result.out;
  EXPECT_TRUE(recordIn(dir.path() / "run").simulated);
  EXPECT_TRUE(mentions(readWhole(dir.path() / "run" / "report.html"), "SIMULATED"));
  EXPECT_TRUE(mentions(readWhole(dir.path() / "run" / "junit.xml"), "SIMULATED"));
}

/// However the errors of a stage are spread over its samples, their sum is what a limit is about.
TEST(Simulate, ALimitOnErrorsIsComparedWithTheTotalOfTheStage) {
  constexpr int kLimit = 10;
  std::mt19937 random(20261124);
  const auto between = [&](int low, int high) { return std::uniform_int_distribution<>(low, high)(random); };
  TempDir dir;
  const auto file = dir.write("plan.toml", R"(schema = 1
name = "errors"
sku = "strict"
[[stage]]
name = "load"
test = "compute.sustained"
ranks = 1
timeout = "5m"
params = { duration = "100s" }
[[stage.expect]]
metric = "compute.sustained_throughput"
min = "1 TFLOP/s"
source = "test"
)");
  dir.write("skus/strict.toml", R"(schema = 1
name = "strict"
extends = "h100-sxm5-80gb"
[[expect]]
metric = "env.ecc_corrected"
where = { memory = "dram" }
max = 10
source = "test"
)");
  for (int round = 0; round < 12; ++round) {
    // The first: 9 errors in each of 100 samples. Then totals about the limit, in any number of parts.
    std::string faults;
    int total = 0;
    const int wanted = round == 0 ? 900 : between(kLimit - 3, kLimit + 3);
    for (int second = 0; total < wanted; second = (second + 1) % 100) {
      const int errors = round == 0 ? 9 : between(1, std::min(3, wanted - total));
      total += errors;
      faults += fmt::format("[[fault]]\nkind = \"ecc\"\ndevice = 2\nat = \"{}s\"\ncorrected = {}\n",
                            round == 0 ? second : between(0, 99), errors);
    }
    const auto scenarioFile = dir.write("errors.toml", readWhole(scenario("h100x8-healthy")) + faults);
    const auto out = dir.path() / std::to_string(round);
    const auto result = runMuster({"run", file.string(), "--simulate", scenarioFile.string(), "--out",
                                   out.string(), "--skus", (dir.path() / "skus").string()});
    EXPECT_EQ(result.exitCode, total > kLimit ? 1 : 0) << total << result.out << result.err;
    for (const Verdict& verdict : verdictsOf(recordIn(out), Outcome::kFail)) {
      EXPECT_EQ(verdict.metric, "env.ecc_corrected");
      EXPECT_EQ(verdict.observed, total);
    }
  }
}

TEST(Simulate, NamesTheSlowGpuEverywhere) {
  TempDir dir;
  const auto result = simulate("h100x8-one-slow-gpu", dir.path() / "run");
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  const Record record = recordIn(dir.path() / "run");
  const auto fails = verdictsOf(record, Outcome::kFail);
  ASSERT_FALSE(fails.empty());
  const std::string device = fails.front().device;
  EXPECT_FALSE(device.empty());
  for (const Verdict& verdict : fails) EXPECT_EQ(verdict.device, device) << verdict.detail;
  const std::string html = readWhole(dir.path() / "run" / "report.html");
  const Verdict& first = fails.front();
  ASSERT_TRUE(first.expectation.has_value());
  EXPECT_FALSE(first.expectation->source.empty());
  EXPECT_FALSE(first.remedy.empty());
  for (const std::string& text : {device, first.metric}) {
    EXPECT_TRUE(mentions(result.out, text)) << text << "\n" << result.out;
    EXPECT_TRUE(mentions(html, text)) << text;
  }
  EXPECT_TRUE(mentions(html, first.expectation->source.substr(0, 20)));
  EXPECT_TRUE(mentions(html, first.remedy.substr(0, 20)));
  EXPECT_TRUE(mentions(result.out, first.remedy.substr(0, 20))) << result.out;
  EXPECT_TRUE(mentions(result.out, first.expectation->source.substr(0, 20))) << result.out;
}

TEST(Simulate, EndsAHangAtTheDeadlineAndNamesRankAndDevice) {
  TempDir dir;
  const auto result = simulate("h100x8-hang", dir.path() / "run");
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  const auto errors = verdictsOf(recordIn(dir.path() / "run"), Outcome::kError);
  ASSERT_FALSE(errors.empty());
  EXPECT_TRUE(std::any_of(errors.begin(), errors.end(), [](const Verdict& v) {
    return v.detail.find("rank ") != std::string::npos && v.detail.find("gpu") != std::string::npos;
  })) << errors.front().detail;
}

struct Fault {
  const char* scenario;
  const char* metric;
  int exitCode;
};

class SimulatedFault : public ::testing::TestWithParam<Fault> {};

TEST_P(SimulatedFault, IsRejectedByItsMetric) {
  TempDir dir;
  const Fault fault = GetParam();
  const auto result = simulate(fault.scenario, dir.path() / "run");
  EXPECT_EQ(result.exitCode, fault.exitCode) << result.out << result.err;
  const auto fails = verdictsOf(recordIn(dir.path() / "run"), Outcome::kFail);
  EXPECT_TRUE(std::any_of(fails.begin(), fails.end(), [&](const Verdict& v) {
    return v.metric == fault.metric;
  })) << result.out;
}

INSTANTIATE_TEST_SUITE_P(All, SimulatedFault,
                         ::testing::Values(Fault{"h100x8-throttling", "env.throttle_thermal", 1},
                                           Fault{"h100x8-ecc-burst", "env.ecc_uncorrected", 1},
                                           Fault{"h100x8-silent-corruption", "compute.gemm_repeat_mismatches",
                                                 1},
                                           Fault{"h100x8-missing-gpu", "env.device_count", 1}));

/// A shipped scenario with one line replaced, and more after it.
std::string changed(const std::string& name, const std::string& line, const std::string& by,
                    const std::string& more = "") {
  std::string text = readWhole(scenario(name));
  const size_t at = text.find(line);
  EXPECT_NE(at, std::string::npos) << line;
  if (at != std::string::npos) text.replace(at, line.size(), by);
  return text + more;
}

/// Metrics that fail, of whatever device, where `text` is the scenario.
std::set<std::string> failing(const std::string& planFile, const std::string& text,
                              const std::vector<std::string>& more = {}) {
  TempDir dir;
  const auto file = writeScenario(dir.path() / "scene.toml", text);
  const auto out = dir.path() / "run";
  const auto result = runMuster(std::vector<std::string>{"run", plan(planFile), "--simulate", file.string(),
                                                         "--plain", "--out", out.string()} +
                                more);
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  std::set<std::string> metrics;
  for (const Verdict& verdict : verdictsOf(recordIn(out), Outcome::kFail)) metrics.insert(verdict.metric);
  return metrics;
}

TEST(Simulate, RejectsGpusWhoseClockIsLow) {
  const std::string low = changed("h100x8-healthy", "load_clock = \"1755 MHz\"", "load_clock = \"1200 MHz\"");
  EXPECT_THAT(failing("node-quick.toml", low), ::testing::Contains("compute.gemm_throughput"));
}

TEST(Simulate, RejectsGpusThatGetTooHot) {
  const std::string hot =
      changed("h100x8-healthy", "load_temperature = \"64 degC\"", "load_temperature = \"92 degC\"");
  EXPECT_THAT(failing("node-quick.toml", hot), ::testing::Contains("env.throttle_thermal"));
}

/// The one fault, and the device and metric that the full plan names it by, beside what the fault slows down.
struct HealthFault {
  const char* name;
  const char* fault;
  const char* metric;
  const char* device;
};

class HealthFaultOfNodeFull : public ::testing::TestWithParam<HealthFault> {};

TEST_P(HealthFaultOfNodeFull, IsAFailureWithItsName) {
  const HealthFault& fault = GetParam();
  const TempDir dir;
  const auto file = writeScenario(dir.path() / "scene.toml",
                                  readWhole(scenario("h100x8-healthy")) + "\n[[fault]]\n" + fault.fault);
  const auto out = dir.path() / "run";
  const auto result = runMuster(
      {"run", plan("node-full.toml"), "--simulate", file.string(), "--plain", "--out", out.string()});
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  const Record record = recordIn(out);
  const auto fails = verdictsOf(record, Outcome::kFail);
  EXPECT_TRUE(std::any_of(fails.begin(), fails.end(), [&](const Verdict& verdict) {
    return verdict.metric == fault.metric;
  })) << result.out;
  for (const Verdict& verdict : fails) EXPECT_EQ(verdict.device, fault.device) << verdict.detail;
  // Of what health looks at, this alone fails.
  std::set<std::string> health;
  for (const Verdict& verdict : fails)
    if (verdict.metric.starts_with("env.")) health.insert(verdict.metric);
  EXPECT_EQ(health, std::set<std::string>{fault.metric});
}

INSTANTIATE_TEST_SUITE_P(
    All, HealthFaultOfNodeFull,
    ::testing::Values(HealthFault{"Power",
                                  "kind = \"throttle\"\ndevice = 6\nfactor = 0.6\nfrom = \"7s\"\nreason = "
                                  "\"power_cap\"\nops = [\"gemm\"]\n",
                                  "env.throttle_power_excess", "gpu6"},
                      HealthFault{"Thermal",
                                  "kind = \"throttle\"\ndevice = 6\nfactor = 0.6\nfrom = \"7s\"\nreason = "
                                  "\"thermal\"\nops = [\"gemm\"]\n",
                                  "env.throttle_thermal", "gpu6"},
                      HealthFault{"Software",
                                  "kind = \"throttle\"\ndevice = 6\nfactor = 0.98\nfrom = \"7s\"\nreason = "
                                  "\"thermal_software\"\nops = [\"gemm\"]\n",
                                  "env.throttle_software_share", "gpu6"},
                      HealthFault{"Sram",
                                  "kind = \"ecc\"\ndevice = 5\nat = \"7s\"\ncorrected = 10001\nmemory = "
                                  "\"sram\"\n",
                                  "env.ecc_corrected", "gpu5"},
                      HealthFault{"Brake",
                                  "kind = \"throttle\"\ndevice = 6\nfactor = 0.6\nfrom = \"7s\"\nreason = "
                                  "\"power_brake\"\nops = [\"gemm\"]\n",
                                  "env.throttle_power_brake", "gpu6"},
                      HealthFault{"Fabric", "kind = \"fabric\"\ndevice = 2\nat = \"7s\"\nmask = 425\n",
                                  "env.fabric_healthy", "gpu2"},
                      HealthFault{"Sxid", "kind = \"sxid\"\nat = \"7s\"\nsxid = 20034\n", "env.sxid_fatal",
                                  ""}),
    [](const auto& info) { return info.param.name; });

TEST(Simulate, TheFullPlanAcceptsAHealthyNode) {
  const TempDir dir;
  const auto out = dir.path() / "run";
  const auto result = runMuster({"run", plan("node-full.toml"), "--simulate", scenario("h100x8-healthy"),
                                 "--plain", "--out", out.string()});
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  for (const Outcome outcome : {Outcome::kFail, Outcome::kWarn, Outcome::kError, Outcome::kUnjudged})
    EXPECT_TRUE(verdictsOf(recordIn(out), outcome).empty());
}

TEST(Simulate, TheFullPlanAcceptsCorrectedErrorsOfTheDram) {
  const TempDir dir;
  const auto file =
      writeScenario(dir.path() / "scene.toml", readWhole(scenario("h100x8-healthy")) +
                                                   "\n[[fault]]\nkind = \"ecc\"\ndevice = 5\nat = \"7s\"\n"
                                                   "corrected = 10001\n");
  const auto result = runMuster({"run", plan("node-quick.toml"), "--simulate", file.string(), "--plain",
                                 "--out", (dir.path() / "run").string()});
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
}

/// all_reduce alone can use NVLS to the full: each of the others has a limit of its own.
TEST(Simulate, RejectsEveryCollectiveOfANodeWhoseLinksAreSlow) {
  const TempDir dir;
  const auto file = writeScenario(
      dir.path() / "scene.toml",
      changed("h100x8-cluster-healthy", "intra_bandwidth = \"479 GB/s\"", "intra_bandwidth = \"270 GB/s\""));
  std::string stages = readWhole(plan("nccl.toml"));
  const std::string needs = "needs = [\"all-reduce\"]\n";
  ASSERT_NE(stages.find(needs), std::string::npos);
  stages.erase(stages.find(needs), needs.size());
  copyIncluded(".", dir.path());
  const auto out = dir.path() / "run";
  const auto result = runMuster({"run", dir.write("nccl.toml", stages).string(), "--simulate", file.string(),
                                 "--plain", "--out", out.string()});
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  std::set<std::string> ops;
  for (const Verdict& verdict : verdictsOf(recordIn(out), Outcome::kFail))
    if (verdict.metric == "collective.large_message_bus_bandwidth") ops.insert(verdict.labels.at("op"));
  EXPECT_EQ(ops, (std::set<std::string>{"all_reduce", "all_gather", "reduce_scatter", "alltoall"}));
}

TEST(Simulate, RejectsANetworkThatGoesThroughTheHostsMemory) {
  const TempDir dir;
  const auto file = writeScenario(
      dir.path() / "scene.toml",
      changed("h100x8-cluster-healthy", "inter_transport = \"ib+gdr\"", "inter_transport = \"ib\""));
  const auto run = [&](const char* name, int nodes) {
    const auto out = dir.path() / name;
    const auto result = runMuster({"run", plan("cluster.toml"), "--simulate", file.string(), "--nodes",
                                   std::to_string(nodes), "--plain", "--out", out.string()});
    EXPECT_EQ(result.exitCode, nodes == 1 ? 0 : 1) << result.out << result.err;
    std::set<std::string> metrics;
    for (const Verdict& verdict :
         verdictsOf(recordIn(nodes == 1 ? out : out / "sim-node-0000"), Outcome::kFail))
      metrics.insert(verdict.metric);
    return metrics;
  };
  EXPECT_EQ(run("two", 2), std::set<std::string>{"collective.gpudirect_rdma"});
  EXPECT_EQ(run("one", 1), std::set<std::string>{}) << "nothing leaves the node";
}

TEST(Simulate, RejectsOnePairOfGpusInTheNcclPlan) {
  const std::string text = readWhole(scenario("h100x8-cluster-healthy"));
  const std::string link = "\n[[fault]]\nkind = \"slow_link\"\ndevice = 1\npeer_device = 4\nfactor = 0.5\n";
  EXPECT_EQ(failing("nccl.toml", text + link),
            (std::set<std::string>{"collective.large_message_bus_bandwidth", "memory.peer_bandwidth"}))
      << "alltoall uses every pair";
  const std::string copies =
      "\n[[fault]]\nkind = \"slow\"\ndevice = 3\nfactor = 0.5\nops = [\"peer_copy\"]\n";
  EXPECT_EQ(failing("nccl.toml", text + copies), std::set<std::string>{"memory.peer_bandwidth"});
}

TEST(Simulate, RejectsANodeWhoseNicIsDownForFiveMillisecondsOfEachSecond) {
  const std::string flap =
      "\n[[fault]]\nkind = \"flapping_nic\"\nnode = 1\nrail = 2\nperiod = \"1s\"\ndown = \"5ms\"\n";
  const std::string text = readWhole(scenario("h100x8-cluster-healthy")) + flap;
  EXPECT_THAT(failing("cluster.toml", text, {"--nnodes", "2", "--node-rank", "1"}),
              ::testing::Contains("env.rdma_link_downed"));
}

TEST(Simulate, RefusesAFaultOnANodeThatTheRunDoesNotHave) {
  TempDir dir;
  const std::string fault = "\n[[fault]]\nkind = \"crash\"\ndevice = 0\nnode = 2\n";
  const auto file = writeScenario(dir.path() / "scene.toml", readWhole(scenario("h100x8-healthy")) + fault);
  const auto run = [&](const std::vector<std::string>& nodes) {
    return runMuster(std::vector<std::string>{"run", plan("node-quick.toml"), "--simulate", file.string(),
                                              "--plain", "--out", (dir.path() / "run").string()} +
                     nodes);
  };
  for (const auto& [nodes, has] :
       {std::pair{std::vector<std::string>{}, "1 node"},
        std::pair{std::vector<std::string>{"--nodes", "2"}, "2 nodes"},
        std::pair{std::vector<std::string>{"--nnodes", "2", "--node-rank", "1"}, "2 nodes"}}) {
    const auto result = run(nodes);
    EXPECT_EQ(result.exitCode, 2) << result.out << result.err;
    EXPECT_TRUE(mentions(result.err, file.string() + ":")) << result.err;
    EXPECT_TRUE(mentions(result.err, std::string("this fault is on node 2, and the run has ") + has))
        << result.err;
    std::filesystem::remove_all(dir.path() / "run");
  }
}

TEST(Simulate, NamesTheGpuWhoseLinkToTheHostIsNarrow) {
  TempDir dir;
  EXPECT_EQ(simulate("h100x8-pcie-x8", dir.path() / "run").exitCode, 1);
  const auto fails = verdictsOf(recordIn(dir.path() / "run"), Outcome::kFail);
  ASSERT_FALSE(fails.empty());
  for (const Verdict& verdict : fails) EXPECT_EQ(verdict.device, "gpu3") << verdict.metric;
}

TEST(Simulate, NamesBothEndsOfASlowPairAndNobodyElse) {
  TempDir dir;
  EXPECT_EQ(simulate("h100x8-slow-peer", dir.path() / "run").exitCode, 1);
  const auto fails = verdictsOf(recordIn(dir.path() / "run"), Outcome::kFail);
  ASSERT_FALSE(fails.empty());
  for (const Verdict& verdict : fails) {
    EXPECT_EQ(verdict.metric, "memory.peer_bandwidth");
    const std::string& peer = verdict.labels.at("peer");
    EXPECT_TRUE((verdict.device == "gpu2" && peer == "gpu5") || (verdict.device == "gpu5" && peer == "gpu2"))
        << verdict.device << " to " << peer;
  }
}

TEST(Simulate, EndsIncompleteOnAnUnknownSku) {
  TempDir dir;
  const auto result = simulate("h100x8-unknown-sku", dir.path() / "run");
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  EXPECT_TRUE(recordIn(dir.path() / "run").profile.name.empty());
}

TEST(Simulate, GivesTheSameFiguresForTheSameSeed) {
  TempDir dir;
  simulate("h100x8-healthy", dir.path() / "a", {"--seed", "7"});
  simulate("h100x8-healthy", dir.path() / "b", {"--seed", "7"});
  simulate("h100x8-healthy", dir.path() / "c", {"--seed", "8"});
  const auto samples = [&](const char* name) {
    std::vector<double> all;
    for (const StageRecord& stage : recordIn(dir.path() / name).stages)
      for (const Measurement& m : stage.measurements)
        if (m.metric == "compute.gemm_throughput") all.insert(all.end(), m.samples.begin(), m.samples.end());
    return all;
  };
  EXPECT_FALSE(samples("a").empty());
  EXPECT_EQ(samples("a"), samples("b"));
  EXPECT_NE(samples("a"), samples("c"));
}

TEST(Simulate, NamesTheStragglerOfACollectiveAndNotThoseWhoWait) {
  const auto run = [](const std::string& name, const std::filesystem::path& out) {
    return runMuster({"run", plan("nccl.toml"), "--simulate", scenario(name), "--out", out.string()});
  };
  TempDir dir;
  const auto result = run("h100x8-straggler", dir.path() / "straggler");
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  std::vector<std::string> named;
  for (const Verdict& verdict : verdictsOf(recordIn(dir.path() / "straggler"), Outcome::kFail))
    if (verdict.metric == "collective.local_compute_time") named.push_back(verdict.device);
  EXPECT_EQ(named, std::vector<std::string>{"gpu3"});
  EXPECT_EQ(run("h100x8-cluster-healthy", dir.path() / "healthy").exitCode, 0);
}

/// The scenario of healthy nodes with another network, and faults.
std::string otherNetwork(const TempDir& dir, const std::string& railBandwidth,
                         const std::string& faults = "") {
  std::string text = readWhole(scenario("h100x8-cluster-healthy"));
  const std::string usual = "rail_bandwidth = \"48.5 GB/s\"";
  const size_t at = text.find(usual);
  EXPECT_NE(at, std::string::npos) << text;
  text.replace(at, usual.size(), "rail_bandwidth = \"" + railBandwidth + "\"");
  return writeScenario(dir.path() / "scenario.toml", text + faults).string();
}

ProcessResult runCluster(const TempDir& dir, const std::string& scenarioFile, int nodes,
                         const std::vector<std::string>& more = {}) {
  return runMuster(std::vector<std::string>{"run", plan("cluster.toml"), "--simulate", scenarioFile,
                                            "--nodes", std::to_string(nodes), "--out",
                                            (dir.path() / "run").string()} +
                   more);
}

std::set<std::string> failedMetrics(const std::filesystem::path& run) {
  std::set<std::string> metrics;
  for (const Verdict& verdict : verdictsOf(recordIn(run), Outcome::kFail)) metrics.insert(verdict.metric);
  return metrics;
}

TEST(Simulate, RejectsNodesWhoseWholeNetworkIsSlow) {
  for (const char* rate : {"12 GB/s", "24 GB/s"})
    for (const int nodes : {2, 4}) {
      TempDir dir;
      const auto result = runCluster(dir, otherNetwork(dir, rate), nodes);
      EXPECT_EQ(result.exitCode, 1) << rate << ", " << nodes << " nodes\n" << result.out << result.err;
      for (int node = 0; node < nodes; ++node)
        EXPECT_EQ(failedMetrics(dir.path() / "run" / ("sim-node-000" + std::to_string(node)))
                      .count("ring.device_bandwidth"),
                  1u)
            << rate << ", node " << node;
      EXPECT_EQ(
          failedMetrics(dir.path() / "run" / "sim-node-0000").count("collective.large_message_bus_bandwidth"),
          1u);
    }
}

/// Eight HCAs, of which none is bad.
const std::string kHcas =
    "\n[rdma]\ncount = 8\nline_rate = \"50 GB/s\"\nbandwidth = \"48.9 GB/s\"\nloopback_bandwidth = "
    "\"48.6 GB/s\"\nlatency = \"1.8us\"\nloopback_latency = \"1.2us\"\nfirmware = \"28.39.1002\"\n";

/// What a pair reaches is a figure of both of its nodes.
TEST(Simulate, RejectsNoHealthyNodeBesideASlowOne) {
  const auto nic = [](int node, int rail = -1) {
    return fmt::format("\n[[fault]]\nnode = {}\nkind = \"slow_nic\"\nfactor = 0.6\n{}", node,
                       rail < 0 ? "" : fmt::format("rail = {}\n", rail));
  };
  struct Case {
    std::string faults;
    std::vector<const char*> states;
    bool outliers = false;
  };
  const Case cases[] = {
      {nic(1), {"affected", "affected"}},
      {"\n[[fault]]\nnode = 1\nkind = \"slow\"\ndevice = 3\nfactor = 0.2\nops = [\"collective\"]\n",
       {"affected", "rejected"}},
      {nic(1, 3) + nic(3, 3), {"affected", "rejected", "affected", "rejected", "affected"}},
      {nic(0, 3) + nic(2, 1), {"rejected", "accepted", "rejected", "accepted"}},
      // Between most nodes it is the rail; the slower ones are open by the fleet's median as well.
      {nic(0, 3) + nic(2, 3) + nic(4, 3), {"incomplete", "affected", "incomplete", "affected", "incomplete"}},
      {nic(0, 3) + nic(1, 3) + nic(2, 3) + nic(3, 3), {"affected", "affected", "affected", "affected"}},
      {kHcas + nic(1), {"affected", "rejected", "affected", "accepted", "accepted", "accepted"}, true},
  };
  for (const Case& each : cases) {
    TempDir dir;
    const int count = static_cast<int>(each.states.size());
    const auto run = runCluster(dir, otherNetwork(dir, "48.5 GB/s", each.faults), count);
    EXPECT_EQ(run.exitCode, 1) << run.out << run.err;
    std::string names;
    for (int node = 0; node < count; ++node) names += fmt::format("sim-node-{:04}\n", node);
    std::vector<std::string> fleetOf = {"fleet",    (dir.path() / "run").string(),
                                        "--expect", dir.write("nodes.txt", names).string(),
                                        "--out",    (dir.path() / "fleet").string()};
    if (each.outliers) fleetOf.emplace_back("--reject-outliers");
    const auto fleet = runMuster(fleetOf);
    EXPECT_EQ(fleet.exitCode, 1) << fleet.out << fleet.err;
    const Json nodes = Json::parse(readWhole(dir.path() / "fleet/fleet.json"))["nodes"];
    for (size_t node = 0; node < each.states.size(); ++node)
      EXPECT_EQ(nodes[node]["state"], each.states[node]) << each.faults << node << fleet.out;
  }
}

/// The GPU whose rank measured a port is not at fault for it, nor are those of the nodes that met it.
TEST(Simulate, NamesThePortThatFailedAndNoRailOfThoseThatMetIt) {
  TempDir dir;
  const auto run = runCluster(
      dir,
      otherNetwork(dir, "48.5 GB/s",
                   kHcas + "[[rdma.fault]]\nkind = \"link_down\"\nnode = 2\nhca = 3\nfrom = \"0s\"\n"),
      3);
  EXPECT_EQ(run.exitCode, 1) << run.out << run.err;
  const std::string names = dir.write("nodes.txt", "sim-node-0000\nsim-node-0001\nsim-node-0002\n").string();
  const auto fleet = runMuster(
      {"fleet", (dir.path() / "run").string(), "--expect", names, "--out", (dir.path() / "fleet").string()});
  const Json found = Json::parse(readWhole(dir.path() / "fleet/fleet.json"));
  EXPECT_EQ(found["incidents"][0]["part"], "mlx5_3/1") << fleet.out;
  EXPECT_EQ(found["incidents"][0]["nodes"], Json::array({"sim-node-0002"}));
  EXPECT_EQ(found["incidents"][0].value("serial", ""), "");
  for (const Json& incident : found["incidents"]) EXPECT_FALSE(incident["nodes"].empty()) << incident;
}

TEST(Simulate, AcceptsANetworkOfTheRateThatThePlanStates) {
  for (const int nodes : {1, 2, 4}) {
    TempDir dir;
    const auto stated =
        runCluster(dir, otherNetwork(dir, "24 GB/s"), nodes, {"--set", "network.rail_bandwidth=25 GB/s"});
    EXPECT_EQ(stated.exitCode, 0) << nodes << "\n" << stated.out << stated.err;
    TempDir usual;
    const auto reference = runCluster(usual, otherNetwork(usual, "48.5 GB/s"), nodes);
    EXPECT_EQ(reference.exitCode, 0) << nodes << "\n" << reference.out << reference.err;
  }
}

TEST(Simulate, RejectsASlowLinkBetweenTheOnlyTwoNodes) {
  TempDir dir;
  const auto result =
      runCluster(dir,
                 otherNetwork(dir, "48.5 GB/s",
                              "\n[[fault]]\nkind = \"slow_link\"\nnode = 0\npeer_node = 1\nfactor = 0.5\n"),
                 2);
  EXPECT_EQ(result.exitCode, 1) << "a single pair has no peers, but the network has a rate\n"
                                << result.out << result.err;
}

TEST(Simulate, WritesOneRecordForEachNode) {
  TempDir dir;
  const auto result = simulate("h100x8-healthy", dir.path() / "run", {"--nodes", "2"});
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  EXPECT_EQ(recordIn(dir.path() / "run" / "sim-node-0000").nodeRank, 0);
  EXPECT_EQ(recordIn(dir.path() / "run" / "sim-node-0001").nodeRank, 1);
}

}  // namespace
}  // namespace muster::testing
