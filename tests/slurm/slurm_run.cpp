// SPDX-License-Identifier: Apache-2.0
// See slurm_run.h.
#include "tests/slurm/slurm_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>

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
                                const std::vector<std::string>& more, const std::string& nodes,
                                double timeout) {
  std::vector<std::string> arguments = {
      "submit", plan.string(), "--nodes",       nodes,
      "--out",  run.string(),  "--same-machine"};  // one host plays all nodes
  arguments.insert(arguments.end(), more.begin(), more.end());
  return slurm().muster(arguments, timeout);
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

fs::path SlurmTest::sickPlan(const std::string& scope, int kind) {
  return writeShared(
      slurm().shared() / fmt::format("sick-{}.toml", kind),
      fmt::format(
          "schema = 1\nname = \"sick\"\nsku = \"host\"\nbackend = \"host\"\n[[stage]]\nname = \"look\"\n"
          "plugin = \"fake-sick\"\ntest = \"run\"\nscope = \"{}\"\nranks = 1\ntimeout = \"1m\"\n"
          "[stage.params]\nkind = {}\n[[stage.expect]]\nmetric = \"fake-sick.value\"\nmin = \"1\"\n{}",
          scope, kind,
          scope == "cluster" ? "[[stage.expect]]\nmetric = \"fake-sick.culprits\"\nmax = \"0\"\n" : ""));
}

ProcessResult SlurmTest::submitPlugin(const fs::path& plan, const fs::path& run, const std::string& nodes) {
  const fs::path folder = slurm().shared() / "plugins";
  fs::create_directories(folder);
  fs::copy_file(buildDir() / "tests" / "fakes" / "fake-sick.so", folder / "fake-sick.so",
                fs::copy_options::skip_existing);
  return submit(plan, run, {"--plugins", folder.string(), "--wait"}, nodes);
}

ProcessResult SlurmTest::submitSick(const fs::path& run, const std::vector<int>& sick,
                                    const std::string& nodes) {
  int kind = 0;
  for (const int node : sick) kind |= 1 << (node - 1);
  return submitPlugin(sickPlan("node", kind), run, nodes);
}

ProcessResult SlurmTest::submitBadLink(const fs::path& run, int a, int b, int more) {
  return submitPlugin(sickPlan("cluster", 16 | more | 1 << (a - 1) | 1 << (b - 1)), run, "node[1-4]");
}

std::string SlurmTest::sbatchAsOtherUser(const std::vector<std::string>& arguments) {
  const std::string id = std::to_string(kOtherUser);
  std::vector<std::string> argv = {"setpriv", "--reuid=" + id, "--regid=" + id, "--clear-groups",
                                   "sbatch",  "--parsable",    "--hold",        "--output=/dev/null"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  argv.emplace_back("--wrap=true");
  const ProcessResult result = slurm().command(argv);
  EXPECT_EQ(result.exitCode, 0) << result.err;
  return result.out.substr(0, result.out.find('\n'));
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
