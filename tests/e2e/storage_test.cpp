// SPDX-License-Identifier: Apache-2.0
// Storage in whole runs: with the real fio on this machine's disk, interrupted and killed, and simulated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "tests/e2e/muster.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::HasSubstr;

class Storage : public ::testing::Test {
 protected:
  Storage() { fs::create_directories(data()); }
  [[nodiscard]] fs::path data() const { return dir_.path() / "data"; }
  [[nodiscard]] fs::path out() const { return dir_.path() / "run"; }

  [[nodiscard]] std::string planFile(const std::string& test, const std::string& params) const {
    return dir_
        .write("plan.toml",
               "schema = 1\nname = \"disk\"\nsku = \"host\"\nbackend = \"host\"\n[[stage]]\nname = "
               "\"disk\"\ntest = \"storage." +
                   test +
                   "\"\nscope = \"node\"\nranks = 1\ntimeout = \"2m\"\n[stage.params]\nkeep_free = \"16 "
                   "MiB\"\ndirectory = \"" +
                   data().string() + "\"\n" + params)
        .string();
  }
  ProcessResult run(const std::string& params,
                    const std::map<std::string, std::string>& environment = {}) const {
    ProcessOptions options;
    options.environment = environment;
    return runMuster({"run",
                      planFile("fio",
                               "size = \"4 MiB\"\nblock_size = \"64 KiB\"\nduration = \"1s\"\ndirect = "
                               "false\n" +
                                   params),
                      "--plain", "--out", out().string()},
                     options);
  }
  /// Starts a run, sends its runner `signal` once `file` is there, and waits until the directory is empty.
  [[nodiscard]] std::string signalled(const std::string& test, const std::string& params,
                                      const std::string& file, const std::string& signal) const {
    const std::string script = R"sh(
"$1" run "$2" --plain --out "$3" >/dev/null 2>&1 &
runner=$!
for i in $(seq 600); do [ -n "$(ls "$4"/*/$5 2>/dev/null)" ] && break; sleep 0.05; done
[ -n "$(ls "$4"/*/$5)" ] || { echo "it never began"; exit 1; }
kill -$6 $runner
for i in $(seq 600); do [ -z "$(ls "$4")" ] && echo gone && exit; sleep 0.05; done
ls -lR "$4"
)sh";
    ProcessOptions options;
    options.timeout = 100;
    const auto ended =
        runProcess({"sh", "-c", script, "sh", (distDir() / "bin/muster").string(), planFile(test, params),
                    (dir_.path() / (test + signal)).string(), data().string(), file, signal},
                   options);
    return ended.out + ended.err;
  }

  TempDir dir_;
};

TEST_F(Storage, OfThisMachineIsAcceptedWithItsEvidence) {
  const auto result = run("");
  EXPECT_EQ(result.exitCode, 0) << result.out << result.err;
  const Record record = recordIn(out());
  std::set<std::string> metrics;
  for (const Measurement& m : stageOf(record, "disk").measurements) {
    metrics.insert(m.metric);
    if (m.metric == "storage.bandwidth") {
      EXPECT_EQ(m.labels.at("io"), "buffered");
      EXPECT_EQ(m.labels.at("pattern"), "read");
    }
    if (m.metric == "storage.engine") {
      EXPECT_THAT(m.text, HasSubstr("fio-"));
    }
  }
  for (const char* metric :
       {"storage.bandwidth", "storage.operations", "storage.latency_p99", "storage.verify_errors",
        "storage.engine", "storage.file_system", "storage.mount_options", "storage.mount_source"})
    EXPECT_EQ(metrics.count(metric), 1u) << metric;
  EXPECT_TRUE(fs::is_empty(data()));
}

/// Data that changed is a rejection, not a slow disk and not an error.
TEST_F(Storage, ThatChangesDataIsRejected) {
  const fs::path fake =
      dir_.write("bin/fio",
                 "#!/bin/sh\ncase \"$*\" in *continue_on_error*) printf XXXX | dd of=data bs=1 "
                 "seek=70000 conv=notrunc 2>/dev/null;; esac\nexec /usr/bin/fio \"$@\"\n");
  fs::permissions(fake, fs::perms(0755));
  const auto result = run("", {{"MUSTER_FIO_DIR", fake.parent_path().string()}});
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  const auto fails = verdictsOf(recordIn(out()), Outcome::kFail);
  ASSERT_EQ(fails.size(), 1u);
  EXPECT_EQ(fails[0].metric, "storage.verify_errors");
  EXPECT_THAT(result.out, HasSubstr("Data was lost or changed"));
}

TEST_F(Storage, WithoutFioIsASkipThatBlocks) {
  const auto result = run("", {{"MUSTER_FIO_DIR", data().string()}});
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("apt-get install fio"));
  EXPECT_FALSE(verdictsOf(recordIn(out()), Outcome::kSkipped).empty());
}

/// Who hands over a plan must not choose which programs run.
TEST_F(Storage, NoPlanNamesPrograms) {
  EXPECT_EQ(run("fio = \"/bin/sh\"\n").exitCode, 2);
  EXPECT_FALSE(fs::exists(out()));
}

TEST_F(Storage, ThatIsInterruptedOrKilledLeavesNothing) {
  const std::string slow = "size = \"4 MiB\"\nduration = \"1m\"\ndirect = false\n";
  EXPECT_EQ(signalled("fio", slow, "data", "INT"), "gone\n");
  EXPECT_EQ(signalled("fio", slow, "data", "KILL"), "gone\n");
  EXPECT_EQ(signalled("loading", "files = 50000\nfile_size = \"64 B\"\n", "0/500", "KILL"), "gone\n");
  // A rank outlives its runner by what it takes to clean up.
  for (int i = 0; i < 300 && !processesWith(dir_.path().string()).empty(); ++i) usleep(100'000);
  EXPECT_TRUE(processesWith(dir_.path().string()).empty());
}

/// Peers are judged by the fleet: the slow disk of one node is named.
TEST(SimulatedStorage, NamesTheNodeWithASlowDisk) {
  const TempDir dir;
  const auto out = (dir.path() / "run").string();
  const auto result = runMuster({"run", plan("storage.toml"), "--simulate", scenario("h100x8-slow-disk"),
                                 "--nodes", "6", "--plain", "--out", out});
  EXPECT_THAT(result.out, HasSubstr("SIMULATED"));
  const auto nodes = dir.write("nodes", "sim-node-[0000-0005]\n").string();
  const auto fleet = runMuster({"fleet", out, "--expect", nodes, "--out", (dir.path() / "fleet").string()});
  EXPECT_EQ(fleet.exitCode, 1) << fleet.out << fleet.err;
  EXPECT_THAT(fleet.out, HasSubstr("6 nodes expected by nodes: 5 accepted, 1 rejected"));
  EXPECT_THAT(fleet.out, HasSubstr("rejected sim-node-0002"));
  EXPECT_THAT(fleet.out, HasSubstr("sim-node-0002: slow in 3 stages: loading, random, sequential"));
}

TEST(SimulatedStorage, NamesTheNodeThatSeesOtherFiles) {
  const TempDir dir;
  const auto file =
      writeScenario(dir.path() / "apart.toml", readWhole(scenario("h100x8-hca-healthy")) +
                                                   "[[storage.fault]]\nkind = \"apart\"\nnode = 1\n");
  const auto out = dir.path() / "run";
  const auto result = runMuster({"run", plan("storage.toml"), "--simulate", file.string(), "--nodes", "3",
                                 "--plain", "--out", out.string()});
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  for (int node = 0; node < 3; ++node) {
    const auto fails = verdictsOf(recordIn(out / ("sim-node-000" + std::to_string(node))), Outcome::kFail);
    EXPECT_EQ(fails.size(), node == 1 ? 1u : 0u) << node;
    for (const Verdict& fail : fails) EXPECT_EQ(fail.metric, "storage.faulty_node");
  }
}

}  // namespace
}  // namespace muster::testing
