// SPDX-License-Identifier: Apache-2.0
// RDMA ports in whole runs: made-up HCAs with a program that behaves like perftest, and simulated ones.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <set>

#include "tests/e2e/muster.h"
#include "tests/support/fake_hcas.h"

namespace muster::testing {
namespace {

/// A stage of the rdma plugin on the made-up machine.
std::string stage(const std::string& test, const std::string& more = "", const std::string& scope = "node",
                  const std::string& expect = "") {
  return "[[stage]]\nname = \"" + test + "\"\nplugin = \"rdma\"\ntest = \"" + test + "\"\nscope = \"" +
         scope + "\"\nranks = 1\ntimeout = \"1m\"\n[stage.params]\n" + more + expect;
}

const std::string kExpect =
    "[[stage.expect]]\nmetric = \"rdma.line_rate_share\"\nmin = \"90%\"\nsource = \"test\"\nremedy = "
    "\"test\"\n"
    "[[stage.expect]]\nmetric = \"rdma.send_latency\"\nmax = \"10us\"\nsource = \"test\"\nremedy = "
    "\"test\"\n";

std::string planOf(const std::string& stages) {
  return "schema = 1\nname = \"hcas\"\nsku = \"host\"\nbackend = \"host\"\n" + stages;
}

class Rdma : public ::testing::Test {
 protected:
  ProcessResult run(const std::string& stages, const std::vector<std::string>& more = {}) {
    const auto file = dir_.write("plan.toml", planOf(stages));
    ProcessOptions options;
    options.environment = hcas_.environment();
    return runMuster(std::vector<std::string>{"run", file.string(), "--out", out().string()} + more, options);
  }
  [[nodiscard]] std::filesystem::path out() const { return dir_.path() / "run"; }
  /// The verdicts about a metric (empty: about a stage itself) of one outcome.
  [[nodiscard]] std::vector<Verdict> about(const std::string& metric, Outcome outcome) const {
    std::vector<Verdict> found = verdictsOf(recordIn(out()), outcome);
    std::erase_if(found, [&](const Verdict& verdict) { return verdict.metric != metric; });
    return found;
  }
  FakeHcas hcas_;
  TempDir dir_;
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Who hands over a plan must not choose which programs run.
TEST_F(Rdma, NoPlanNamesPrograms) {
  hcas_.add("mlx5_0");
  for (const char* parameter : {"perftest_dir", "sysfs"}) {
    const auto result = run(stage("perftest", std::string(parameter) + " = \"" + hcas_.programs() + "\"\n"));
    EXPECT_EQ(result.exitCode, 2);
    EXPECT_TRUE(contains(result.err, parameter)) << result.err;
    EXPECT_FALSE(std::filesystem::exists(out()));
  }
}

TEST_F(Rdma, ProgramsThatOthersCouldReplaceAreRefused) {
  hcas_.add("mlx5_0");
  std::filesystem::permissions(hcas_.programs(), std::filesystem::perms(0777));
  const auto result = run(stage("perftest", "samples = 1\n", "node", kExpect));
  EXPECT_NE(result.exitCode, 0);
  EXPECT_TRUE(contains(result.out, "refused: the folder")) << result.out;
}

TEST_F(Rdma, HealthyPortsAreAccepted) {
  hcas_.add("mlx5_0");
  hcas_.add("mlx5_1");
  const auto result =
      run(stage("perftest", "samples = 1\n", "node", kExpect) + stage("counters", "duration = \"0s\"\n"));
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  EXPECT_EQ(about("rdma.line_rate_share", Outcome::kPass).size(), 2u);
  EXPECT_EQ(about("rdma.link_downed", Outcome::kPass).size(), 2u);
  EXPECT_TRUE(verdictsOf(recordIn(out()), Outcome::kUnjudged).empty());
}

TEST_F(Rdma, ASlowPortIsRejectedByName) {
  hcas_.add("mlx5_0");
  hcas_.add("mlx5_1", "ok", 200);
  const auto result = run(stage("perftest", "samples = 1\n", "node", kExpect));
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  const auto fails = verdictsOf(recordIn(out()), Outcome::kFail);
  ASSERT_EQ(fails.size(), 1u);
  EXPECT_EQ(fails[0].labels.at("port"), "mlx5_1/1");
}

TEST_F(Rdma, ALinkThatWentDownIsRejected) {
  hcas_.add("mlx5_0");
  hcas_.configure("count " + hcas_.portFile("mlx5_0", "counters/link_downed") + " 1");
  const auto result = run(stage("counters", "duration = \"0s\"\n"));
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  EXPECT_EQ(about("rdma.link_downed", Outcome::kFail).size(), 1u);
  EXPECT_TRUE(contains(result.out, "Reseat or replace cable")) << result.out;
}

TEST_F(Rdma, APortThatIsDownIsRejected) {
  hcas_.add("mlx5_0");
  hcas_.add("mlx5_1");
  hcas_.set("mlx5_1", "state", "1: DOWN\n");
  const auto result = run(stage("perftest", "samples = 1\n", "node", kExpect));
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  EXPECT_EQ(about("rdma.port_active", Outcome::kFail).size(), 1u);
}

TEST_F(Rdma, NoHcaIsASkipThatBlocks) {
  const auto result = run(stage("perftest", "", "node", kExpect));
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  EXPECT_TRUE(contains(result.out, "no RDMA device")) << result.out;
  EXPECT_FALSE(verdictsOf(recordIn(out()), Outcome::kSkipped).empty());
  EXPECT_TRUE(verdictsOf(recordIn(out()), Outcome::kError).empty()) << result.out;
}

TEST_F(Rdma, AMissingEngineIsAnErrorThatNamesThePackage) {
  hcas_.add("mlx5_0");
  std::filesystem::remove(hcas_.programs() + "/ib_write_bw");
  const auto result = run(stage("perftest", "", "node", kExpect));
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  EXPECT_TRUE(contains(result.out, "apt-get install perftest")) << result.out;
}

TEST_F(Rdma, AHangingEngineIsAnErrorAndLeavesNothingBehind) {
  hcas_.add("mlx5_0", "hang");
  const auto result = run(stage("perftest", "seconds = 1\nengine_timeout = \"1s\"\n", "node", kExpect));
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  const auto errors = verdictsOf(recordIn(out()), Outcome::kError);
  EXPECT_TRUE(std::any_of(errors.begin(), errors.end(), [](const Verdict& verdict) {
    return contains(verdict.detail, "mlx5_0/1") && contains(verdict.detail, "did not end within 2 s");
  })) << result.out;
  EXPECT_TRUE(processesWith(hcas_.programs()).empty());
}

TEST_F(Rdma, WhatTheEngineLeavesBehindIsEndedToo) {
  hcas_.add("mlx5_0", "orphan");
  EXPECT_EQ(run(stage("perftest", "samples = 1\n", "node", kExpect)).exitCode, 0);
  EXPECT_TRUE(processesWith(hcas_.programs()).empty());
}

/// A TCP port that was free a moment ago.
int freePort() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t length = sizeof address;
  EXPECT_EQ(bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length), 0);
  close(socket);
  return ntohs(address.sin_port);
}

/// Two nodes of one run, both on this machine.
std::vector<ProcessResult> runPair(const std::string& stages, const FakeHcas& hcas, const TempDir& dir) {
  const auto file = dir.write("plan.toml", planOf(stages));
  const std::string place = "127.0.0.1:" + std::to_string(freePort());
  std::vector<std::future<ProcessResult>> running;
  for (int rank = 0; rank < 2; ++rank)
    running.push_back(std::async(std::launch::async, [=, &dir, &hcas] {
      ProcessOptions options;
      options.environment = hcas.environment();
      options.environment["MUSTER_TOKEN"] = "a-secret-of-both-nodes";
      return runMuster({"run", file.string(), "--out", (dir.path() / ("out" + std::to_string(rank))).string(),
                        "--nnodes", "2", "--node-rank", std::to_string(rank), "--rendezvous", place},
                       options);
    }));
  std::vector<ProcessResult> ended;
  for (auto& one : running) ended.push_back(one.get());
  return ended;
}

/// The record of a node, wherever below its folder it lies.
Record recordBelow(const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().filename() == "record.json") return recordIn(entry.path().parent_path());
  ADD_FAILURE() << "no record below " << folder;
  return {};
}

TEST_F(Rdma, SameRailsOfTwoNodesMeetThroughTheStore) {
  hcas_.add("mlx5_0");
  hcas_.add("mlx5_1", "ok", 200);
  const auto ended =
      runPair(stage("perftest", "samples = 1\ninterface = \"lo\"\n", "cluster", kExpect), hcas_, dir_);
  for (int rank = 0; rank < 2; ++rank) {
    const ProcessResult& result = ended[static_cast<size_t>(rank)];
    EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
    const auto fails = verdictsOf(recordBelow(dir_.path() / ("out" + std::to_string(rank))), Outcome::kFail);
    ASSERT_EQ(fails.size(), 1u) << result.out;
    EXPECT_EQ(fails[0].labels.at("port"), "mlx5_1/1");
    EXPECT_EQ(fails[0].labels.at("path"), "pair");
    EXPECT_EQ(fails[0].labels.at("peer"), std::to_string(1 - rank));
  }
}

TEST_F(Rdma, ABurnOfTwoNodesBeginsTogether) {
  const auto ended = runPair(
      "[[stage]]\nname = \"burn\"\nplugin = \"compute\"\ntest = \"sustained\"\nscope = \"cluster\"\nranks = "
      "1\ntimeout = "
      "\"1m\"\n[stage.params]\nsize = 64\nduration = \"100ms\"\nwindow = \"20ms\"\n[[stage.expect]]\nmetric "
      "= "
      "\"compute.sustained_start_spread\"\nmax = \"10s\"\nsource = \"test\"\nremedy = \"test\"\n",
      hcas_, dir_);
  for (int rank = 0; rank < 2; ++rank) {
    const ProcessResult& result = ended[static_cast<size_t>(rank)];
    const Record record = recordBelow(dir_.path() / ("out" + std::to_string(rank)));
    std::vector<double> spreads;
    for (const StageRecord& one : record.stages)
      for (const Measurement& m : one.measurements)
        if (m.metric == "compute.sustained_start_spread")
          spreads.insert(spreads.end(), m.samples.begin(), m.samples.end());
    ASSERT_EQ(spreads.size(), 1u) << result.out << result.err;
    EXPECT_GT(spreads[0], 0) << "two nodes that share no clock never leave a barrier at the very same moment";
  }
}

struct Planted {
  const char* scenario;
  const char* plan;
  const char* metric;
  const char* port;
};

class SimulatedHcaFault : public ::testing::TestWithParam<Planted> {};

TEST_P(SimulatedHcaFault, IsRejectedByMetricAndPort) {
  const TempDir dir;
  const auto result = runMuster({"run", plan(GetParam().plan), "--simulate", scenario(GetParam().scenario),
                                 "--out", (dir.path() / "run").string()});
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  const auto fails = verdictsOf(recordIn(dir.path() / "run"), Outcome::kFail);
  ASSERT_FALSE(fails.empty()) << result.out;
  for (const Verdict& verdict : fails) {
    EXPECT_EQ(verdict.metric, GetParam().metric);
    EXPECT_EQ(verdict.labels.at("port"), GetParam().port);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, SimulatedHcaFault,
    ::testing::Values(Planted{"h100x8-hca-slow", "rdma.toml", "rdma.line_rate_share", "mlx5_5/1"},
                      Planted{"h100x8-symbol-errors", "rdma.toml", "env.rdma_symbol_errors", "mlx5_2/1"},
                      // A stage that has nothing to do with the network.
                      Planted{"h100x8-link-down", "node-quick.toml", "env.rdma_link_downed", "mlx5_3/1"}));

TEST(SimulatedHca, AHealthyNodeIsAccepted) {
  const TempDir dir;
  const auto result = runMuster({"run", plan("rdma.toml"), "--simulate", scenario("h100x8-hca-healthy"),
                                 "--out", (dir.path() / "run").string()});
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  const Record record = recordIn(dir.path() / "run");
  EXPECT_TRUE(verdictsOf(record, Outcome::kUnjudged).empty());
  EXPECT_EQ(record.inventory["nics"].size(), 8u);
}

TEST(SimulatedHca, AnHcaBelowItsPcieLinkIsNamedByTheProfilesLimit) {
  const TempDir dir;
  const auto file =
      writeScenario(dir.path() / "scene.toml", readWhole(scenario("h100x8-hca-healthy")) +
                                                   "[[rdma.fault]]\nkind = \"pcie\"\nhca = 6\nlanes = 8\n");
  const auto result = runMuster(
      {"run", plan("node-quick.toml"), "--simulate", file.string(), "--out", (dir.path() / "run").string()});
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  const auto warnings = verdictsOf(recordIn(dir.path() / "run"), Outcome::kWarn);
  ASSERT_EQ(warnings.size(), 1u) << result.out;
  EXPECT_EQ(warnings[0].metric, "env.hca_pcie_share");
  EXPECT_EQ(warnings[0].labels.at("hca"), "mlx5_6");
  EXPECT_EQ(warnings[0].labels.at("link"), "x8 at 32 GT/s of x16 at 32 GT/s");
}

/// Each of these passes any share of the rate that its ports trained at.
TEST(SimulatedHca, PortsAreComparedWithTheNetworkThatIsExpected) {
  const auto failing = [](const std::string& line, const std::string& by,
                          const std::vector<std::string>& more) {
    const TempDir dir;
    std::string text = readWhole(scenario("h100x8-hca-healthy"));
    text.replace(text.find(line), line.size(), by);
    const auto file = writeScenario(dir.path() / "scene.toml", text);
    const auto result =
        runMuster(std::vector<std::string>{"run", plan("rdma.toml"), "--simulate", file.string(), "--out",
                                           (dir.path() / "run").string()} +
                  more);
    std::set<std::string> metrics;
    for (const Verdict& verdict : verdictsOf(recordIn(dir.path() / "run"), Outcome::kFail))
      metrics.insert(verdict.metric);
    EXPECT_EQ(result.exitCode, metrics.empty() ? 0 : 1) << result.out << result.err;
    return metrics;
  };
  const std::string rate = "line_rate = \"50 GB/s\"";
  const std::string slower =
      "line_rate = \"12.5 GB/s\"\nbandwidth = \"12.3 GB/s\"\nloopback_bandwidth = \"12.2 GB/s\"\n#";
  const std::string rest = "\nbandwidth = \"48.9 GB/s\"\nloopback_bandwidth = \"48.6 GB/s\"";
  EXPECT_EQ(failing(rate + rest, slower, {}), std::set<std::string>{"rdma.line_rate"});
  EXPECT_EQ(failing(rate + rest, slower, {"--set", "network.rail_bandwidth=12.5 GB/s"}),
            std::set<std::string>{});
  EXPECT_EQ(failing("count = 8\nline_rate", "count = 7\nline_rate", {}),
            std::set<std::string>{"rdma.port_count"});
  EXPECT_EQ(failing("count = 8\nline_rate", "count = 4\nline_rate", {"--set", "network.rails=4"}),
            std::set<std::string>{});
}

}  // namespace
}  // namespace muster::testing
