// SPDX-License-Identifier: Apache-2.0
// Processes as torchrun starts them: its variables, several on each host, and its agent on the port they
// name.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "tests/cluster/cluster_run.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr int kTorchrunHosts = 2;
constexpr int kPerHost = 2;
constexpr int kAgentPort = 29500;  ///< of a host that is this test's own
constexpr const char* kAgent = "torchrun-agent";

class Torchrun : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Hosts::whyNot(); !why.empty()) GTEST_SKIP() << why;
    fs::create_directories(dir_.path() / "plugins");
    fs::copy_file(buildDir() / "tests/fakes/fake-lockstep.so", dir_.path() / "plugins/fake-lockstep.so");
    plan_ =
        dir_.write("plan.toml", "schema = 1\nname = \"launched\"\nsku = \"auto\"\nbackend = \"host\"\n\n" +
                                    clusterWalk("walk", 3, "40s"));
  }

  void TearDown() override {
    for (const int pid : hosts_.processes(0, kAgent)) kill(pid, SIGKILL);
  }

  /// Holds MASTER_PORT on host 0, as torchrun's own agent does, until it is killed.
  void startAgent() {
    const fs::path listening = dir_.path() / "listening";
    agent_ =
        hosts_.start(0, {"/usr/bin/python3", "-c",
                         fmt::format("import pathlib, socket, time\ns = socket.create_server(('{}', {}))\n"
                                     "pathlib.Path('{}').touch()\ntime.sleep(600)",
                                     Hosts::address(0), kAgentPort, listening.string()),
                         kAgent});
    while (!fs::exists(listening)) {
      ASSERT_NE(agent_.wait_for(std::chrono::milliseconds(20)), std::future_status::ready)
          << agent_.get().err;
    }
  }

  std::future<ProcessResult> start(int host, int local) {
    const int rank = host * kPerHost + local;
    ProcessOptions options;
    options.timeout = 90;
    options.environment = {
        {"MUSTER_TOKEN", ClusterRun::kToken},  {"TORCHELASTIC_RUN_ID", "none"},
        {"GROUP_RANK", std::to_string(host)},  {"GROUP_WORLD_SIZE", std::to_string(kTorchrunHosts)},
        {"RANK", std::to_string(rank)},        {"WORLD_SIZE", std::to_string(kTorchrunHosts * kPerHost)},
        {"LOCAL_RANK", std::to_string(local)}, {"LOCAL_WORLD_SIZE", std::to_string(kPerHost)},
        {"MASTER_ADDR", Hosts::address(0)},    {"MASTER_PORT", std::to_string(kAgentPort)}};
    return hosts_.start(host,
                        {distDir() / "bin/muster", "run", plan_, "--plugins", dir_.path() / "plugins",
                         "--out", dir_.path() / "out"},
                        options);
  }

  void expectPartOfTheGroup(int host) const {
    auto record = readRecord(dir_.path() / "out" / fmt::format("node-{:04}", host) / "record.json");
    ASSERT_TRUE(record.ok()) << record.error().text();
    EXPECT_EQ(record->node, Hosts::name(host));
    EXPECT_EQ(record->nodeRank, host);
    EXPECT_EQ(record->nodeCount, kTorchrunHosts);
    EXPECT_EQ(record->launcher.value("kind", ""), "torchrun");
    const auto walk = std::find_if(record->stages.begin(), record->stages.end(),
                                   [](const StageRecord& stage) { return stage.name == "walk"; });
    ASSERT_NE(walk, record->stages.end());
    EXPECT_EQ(walk->group, Json({{"world_size", kTorchrunHosts},
                                 {"first_rank", host},
                                 {"nodes", kTorchrunHosts},
                                 {"id", walk->group.value("id", "")},
                                 {"around", hostsAround(kTorchrunHosts)},
                                 {"culprit", ""}}));
  }

  Hosts hosts_{kTorchrunHosts};
  TempDir dir_;
  fs::path plan_;
  std::future<ProcessResult> agent_;
};

TEST_F(Torchrun, LeadsOneNodeOnEachHostBesideItsAgentAndTheOtherProcessesEndAtOnce) {
  ASSERT_NO_FATAL_FAILURE(startAgent());
  std::vector<std::future<ProcessResult>> running;
  for (int host = 0; host < kTorchrunHosts; ++host)
    for (int local = 0; local < kPerHost; ++local) running.push_back(start(host, local));
  for (size_t i = 0; i < running.size(); ++i) {
    const ProcessResult result = running[i].get();
    EXPECT_EQ(result.exitCode, 0) << "process " << i << "\n" << result.out << result.err;
    if (i % kPerHost == 0) continue;
    EXPECT_THAT(result.out + result.err,
                HasSubstr("local rank 1: the process with local rank 0 runs the plan"));
  }
  for (int host = 0; host < kTorchrunHosts; ++host) expectPartOfTheGroup(host);
}

}  // namespace
}  // namespace muster::testing
