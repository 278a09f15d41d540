// SPDX-License-Identifier: Apache-2.0
// Runs that a real launcher starts: Debian's mpirun, its daemons on hosts of their own.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/cluster/cluster_run.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class OpenMpi : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Hosts::whyNot(); !why.empty()) GTEST_SKIP() << why;
    if (runProcess({"mpirun", "--version"}).exitCode != 0)
      GTEST_SKIP() << "mpirun is missing: apt-get install openmpi-bin";
    for (const char* name : {"lockstep", "ok"}) {
      fs::create_directories(dir_.path() / "plugins");
      fs::copy_file(buildDir() / "tests/fakes" / fmt::format("fake-{}.so", name),
                    dir_.path() / "plugins" / fmt::format("fake-{}.so", name));
    }
    const fs::path agent = dir_.write("agent", hosts_.remoteShell());
    fs::permissions(agent, fs::perms::owner_all);
  }

  /// Starts mpirun on host 0: `processes` a host on all hosts, each `muster run PLAN`.
  std::future<ProcessResult> start(const std::string& stages, int processes = 1,
                                   const std::vector<std::string>& more = {}) {
    const fs::path plan = dir_.write(
        "plan.toml", "schema = 1\nname = \"launched\"\nsku = \"auto\"\nbackend = \"host\"\n\n" + stages);
    std::string addresses;
    for (int host = 0; host < hosts_.count(); ++host)
      addresses += fmt::format("{}{}:{}", host == 0 ? "" : ",", Hosts::address(host), processes);
    std::vector<std::string> command = {"mpirun",
                                        "--mca",
                                        "plm_rsh_agent",
                                        dir_.path() / "agent",
                                        "--host",
                                        addresses,
                                        "--map-by",
                                        fmt::format("ppr:{}:node", processes),
                                        "--bind-to",
                                        "none",
                                        "-x",
                                        "MUSTER_TOKEN",
                                        "-x",
                                        "OMP_NUM_THREADS",
                                        "-x",
                                        "MASTER_ADDR",
                                        distDir() / "bin/muster",
                                        "run",
                                        plan,
                                        "--plugins",
                                        dir_.path() / "plugins",
                                        "--out",
                                        dir_.path() / "out"};
    command.insert(command.end(), more.begin(), more.end());
    ProcessOptions options;
    options.environment = {{"MUSTER_TOKEN", ClusterRun::kToken},
                           {"MASTER_ADDR", Hosts::address(0)},
                           {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                           {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}};
    return hosts_.start(0, command, options);
  }

  [[nodiscard]] Record record(int host) const {
    auto record = readRecord(dir_.path() / "out" / fmt::format("node-{:04}", host) / "record.json");
    if (record.ok()) return std::move(*record);
    ADD_FAILURE() << record.error().text();
    return {};
  }

  /// Waits for a process on a host whose command line has this in it.
  [[nodiscard]] bool await(int host, const std::string& text) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::chrono::steady_clock::now() < end) {
      if (!hosts_.processes(host, text).empty()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
  }

  void signalRunner(int host, int signal) const {
    for (const int pid : hosts_.processes(host, "bin/muster"))
      if (readWhole(fmt::format("/proc/{}/comm", pid)) == "muster\n") kill(pid, signal);
  }

  Hosts hosts_{2};
  TempDir dir_;
};

TEST_F(OpenMpi, StartsOneNodeOnEachHostAndTheyFormOneGroup) {
  const ProcessResult result = start(clusterWalk("walk", 3, "40s") + kAfterStage).get();
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  for (int host = 0; host < 2; ++host) {
    const Record node = record(host);
    EXPECT_EQ(node.node, Hosts::name(host));
    EXPECT_EQ(node.exitCode, 0);
    EXPECT_EQ(node.launcher.value("kind", ""), "open-mpi");
    for (const StageRecord& stage : node.stages)
      if (stage.name == "walk") {
        EXPECT_EQ(stage.group, Json({{"world_size", 2},
                                     {"first_rank", host},
                                     {"nodes", 2},
                                     {"id", stage.group.value("id", "")},
                                     {"around", hostsAround(2)},
                                     {"culprit", ""}}));
      }
  }
}

TEST_F(OpenMpi, OfSeveralProcessesOnAHostTheFirstRuns) {
  const ProcessResult result = start(clusterWalk("walk", 3, "40s"), 2).get();
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  EXPECT_THAT(result.out + result.err,
              HasSubstr("local rank 1: the process with local rank 0 runs the plan"));
  for (int host = 0; host < 2; ++host) EXPECT_EQ(record(host).nodeCount, 2);
}

// mpirun ends all processes once one of them exits with another code than 0.
TEST_F(OpenMpi, ANodeThatFailsFirstDoesNotCutTheOthersShort) {
  std::string stages = clusterWalk("walk", 3, "40s");
  stages.insert(stages.rfind("steps ="), "fail_rank = 0\n");
  auto running = start(stages + kAfterStage + "[stage.params]\nkind = 200\n");
  ASSERT_TRUE(await(1, "after.rank0.attempt1"));
  signalRunner(1, SIGSTOP);
  // Long enough for node 0 to end its run, short enough for node 1 not to count as lost.
  std::this_thread::sleep_for(std::chrono::seconds(4));
  signalRunner(1, SIGCONT);
  const ProcessResult result = running.get();
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  EXPECT_EQ(record(0).exitCode, 3);
  EXPECT_EQ(record(1).exitCode, 0);
}

}  // namespace
}  // namespace muster::testing
