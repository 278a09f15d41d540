// SPDX-License-Identifier: Apache-2.0
// See slurm_run.h.
#include "tests/slurm/slurm_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <fstream>

#include "reports/model/record.h"

namespace muster::testing {
namespace fs = std::filesystem;
namespace {

/// Names in a folder that do not begin with a dot.
std::set<std::string> namesIn(const fs::path& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (const std::string name = entry.path().filename(); name.front() != '.') names.insert(name);
  return names;
}

fs::path writeShared(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

}  // namespace

std::unique_ptr<SlurmCluster> SlurmTest::theCluster;

void SlurmTest::startCluster(const std::string& extra) {
  if (geteuid() != 0) GTEST_SKIP() << "slurmd and munge of other users' jobs need root";
  theCluster = std::make_unique<SlurmCluster>(4, extra);
}

void SlurmTest::TearDownTestSuite() {
  theCluster.reset();
}

void SlurmTest::SetUp() {
  if (geteuid() != 0) GTEST_SKIP() << "slurmd and munge of other users' jobs need root";
  slurm().tidy();
}

fs::path SlurmTest::newRun() {
  static int number = 0;
  return slurm().shared() / fmt::format("run-{}", ++number);
}

ProcessResult SlurmTest::submit(const fs::path& plan, const fs::path& run,
                                const std::vector<std::string>& more, const std::string& nodes) {
  std::vector<std::string> arguments = {
      "submit", plan.string(), "--nodes",       nodes,
      "--out",  run.string(),  "--same-machine"};  // one host plays all nodes
  arguments.insert(arguments.end(), more.begin(), more.end());
  return slurm().muster(arguments);
}

fs::path SlurmTest::waitingPlan(int seconds) {
  return writeShared(
      slurm().shared() / fmt::format("waiting-{}.toml", seconds),
      fmt::format(
          "schema = 1\nname = \"waiting\"\nsku = \"host\"\nbackend = \"host\"\n[[stage]]\nname = \"health\"\n"
          "plugin = \"env\"\ntest = \"health\"\nscope = \"node\"\nranks = 1\ntimeout = "
          "\"1m\"\n[stage.params]\n"
          "idle_window = \"{}s\"\nkernel_log = \"optional\"\n",
          seconds));
}

fs::path SlurmTest::quickPlan() {
  return writeShared(slurm().shared() / "quick.toml",
                     "schema = 1\nname = \"quick\"\n[[stage]]\nname = \"gemm\"\nplugin = \"compute\"\ntest = "
                     "\"gemm\"\ntimeout = \"2m\"\n"
                     "[stage.params]\ndtype = \"bf16\"\nsize = 8192\n");
}

std::string SlurmTest::healthy() {
  return (distDir() / "share" / "muster" / "plans" / "scenarios" / "h100x8-healthy.toml").string();
}

void SlurmTest::reject(const fs::path& run, const std::string& node, const std::string& metric) {
  const fs::path file = run / "records" / "nodes" / node / "record.json";
  auto record = readRecord(file);
  ASSERT_TRUE(record.ok()) << record.error().text();
  ASSERT_FALSE(record->simulated);
  Verdict verdict;
  verdict.outcome = Outcome::kFail;
  verdict.stage = record->stages.back().name;
  verdict.caseId = record->stages.back().cases.front().id;
  verdict.metric = metric;
  verdict.observed = 1;
  verdict.limit = 0;
  verdict.margin = std::nan("");
  verdict.detail = "1, required at most 0";
  record->stages.back().verdicts.push_back(verdict);
  record->stages.back().outcome = Outcome::kFail;
  record->accounting.add(verdict);
  ++record->accounting.expected;
  record->acceptance = "rejected";
  record->exitCode = 1;
  record->reasons = {"1 expectation failed"};
  ASSERT_TRUE(writeRecord(*record, file).ok());
  writeShared(run / "exits" / node, "1\n");
  setState(run, node, "rejected", true, "1 expectation failed");
}

void SlurmTest::setState(const fs::path& run, const std::string& node, const std::string& state, bool suspect,
                         const std::string& reason) {
  const fs::path file = run / "fleet" / "fleet.json";
  Json fleet = Json::parse(readWhole(file));
  fleet["acceptance"] = "rejected";
  fleet["exit_code"] = 1;
  for (Json& one : fleet["nodes"]) {
    if (one["node"] != node) continue;
    one["state"] = state;
    one["reason"] = reason;
    one["suspect"] = suspect;
  }
  writeShared(file, fleet.dump());
  writeShared(run / "fleet.exit", "1\n");
}

std::set<std::string> SlurmTest::claimed(const fs::path& run) {
  return namesIn(run / "claims");
}

std::set<std::string> SlurmTest::ended(const fs::path& run) {
  return namesIn(run / "exits");
}

std::set<std::string> SlurmTest::recorded(const fs::path& run) {
  std::set<std::string> names;
  for (const std::string& name : namesIn(run / "records" / "nodes"))
    if (fs::exists(run / "records" / "nodes" / name / "record.json")) names.insert(name);
  return names;
}

}  // namespace muster::testing
