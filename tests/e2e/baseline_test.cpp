// SPDX-License-Identifier: Apache-2.0
// `muster baseline`: profiles learned from simulated fleets, judged by, compared, refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>

#include "runner/core/json.h"
#include "runner/core/text.h"
#include "runner/system/files.h"
#include "tests/e2e/muster.h"

namespace muster::testing {
namespace {

constexpr int kNodes = 10;

/// What a fleet is learned from here: seconds for ten nodes.
constexpr const char* kBaselinePlan = R"(schema = 1
name = "learn"
sku = "auto"
backend = "cuda"
[[stage]]
name = "gemm"
plugin = "compute"
test = "gemm"
scope = "device"
timeout = "4m"
[stage.params]
size = 8192
[stage.matrix]
dtype = ["bf16", "tf32"]
[[stage]]
name = "memory"
plugin = "memory"
test = "bandwidth"
scope = "device"
timeout = "3m"
)";

/// One fleet for all cases, made when the first one asks.
struct Fleet {
  TempDir dir;
  std::string planFile = dir.write("plan.toml", kBaselinePlan).string();
  std::string run = make("run", scenario("h100x8-healthy"), "42", kNodes);

  std::string make(const std::string& name, const std::string& scenarioFile, const std::string& seed,
                   int nodes) {
    const std::string out = (dir.path() / name).string();
    runMuster({"run", planFile, "--simulate", scenarioFile, "--seed", seed, "--nodes", std::to_string(nodes),
               "--out", out, "--plain"});
    return out;
  }
};

Fleet& fleet() {
  static Fleet made;
  return made;
}

ProcessResult learn(const std::string& run, const std::string& out,
                    const std::vector<std::string>& more = {}) {
  return runMuster(std::vector<std::string>{"baseline", "learn", run, "-o", out} + more);
}

/// Options of a correction by simulated machines.
const std::vector<std::string> kCorrect = {"--correct", "--allow-simulated"};

/// The healthy H100s with a fault of one node's GPU.
std::string sickScenario(const TempDir& dir, const std::string& faults) {
  return dir.write("sick.toml", readWhole(scenario("h100x8-healthy")) + faults).string();
}

std::string nodeRecord(const std::string& run, int node) {
  return run + "/sim-node-" + (node < 10 ? "000" : "00") + std::to_string(node) + "/record.json";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const std::string kSlowGpu =
    "\n[[fault]]\nkind = \"slow\"\nnode = 4\ndevice = 2\nfactor = 0.95\nops = [\"gemm\"]\n";

TEST(Baseline, HelpTeachesByExample) {
  const auto result = runMuster({"baseline", "learn", "--help"});
  EXPECT_EQ(result.exitCode, 0);
  for (const char* part :
       {"muster baseline learn runs/first", "--allow-simulated", "8 healthy nodes", "muster judge"})
    EXPECT_TRUE(has(result.out, part)) << part;
  EXPECT_EQ(runMuster({"baseline"}).exitCode, 2);
}

TEST(Baseline, LearnsAProfileThatSparesAnotherHealthyFleet) {
  const std::string profile = (fleet().dir.path() / "learned.toml").string();
  const auto result = learn(fleet().run, profile, {"--allow-simulated"});
  ASSERT_EQ(result.exitCode, 0) << result.err;
  for (const char* part : {"SIMULATED", "10 nodes of plan learn: 10 used",
                           "compute.gemm_throughput dtype=bf16", "muster judge RECORD --sku"})
    EXPECT_TRUE(has(result.out, part)) << part << " in " << result.out;
  const std::string text = readWhole(profile);
  for (const char* part : {"# SIMULATED", "name = \"h100-sxm5-80gb\"", "simulated = ", "driver 580.95.05",
                           "records sha256 ", "env.nvlinks_active"})
    EXPECT_TRUE(has(text, part)) << part;
  const std::string other = fleet().make("other", scenario("h100x8-healthy"), "4711", 4);
  for (int node = 0; node < 4; ++node) {
    const auto judged = runMuster({"judge", nodeRecord(other, node), "--sku", profile});
    EXPECT_EQ(judged.exitCode, 0) << judged.out;
  }
}

/// The bundled healthy fleets, also with bridged pairs and with stages of one GPU and of all: whom a profile
/// was learned from passes by it, and so does another healthy fleet.
TEST(Baseline, AcceptsThoseItWasLearnedFromAndAnotherHealthyFleet) {
  constexpr int kFleet = 8;
  for (const auto& [planName, model] : {std::pair{"node-quick", "h100x8-healthy"},
                                        {"node-quick", "b200x8-healthy"},
                                        {"node-full", "h100-pciex8-healthy"}}) {
    SCOPED_TRACE(std::string(planName) + " on " + model);
    TempDir dir;
    const auto run = [&](const std::string& name, int nodes, const std::vector<std::string>& more) {
      std::vector<std::string> args = {
          "run",          plan(planName + std::string(".toml")), "--nodes", std::to_string(nodes),
          "--out",        (dir.path() / name).string(),          "--plain", "--simulate",
          scenario(model)};
      if (planName == std::string("node-full"))
        args = args + std::vector<std::string>{"--set", "sustained.duration=1m"};
      return runMuster(args + more);
    };
    ASSERT_EQ(run("run", kFleet, {}).exitCode, 0);
    std::filesystem::create_directory(dir.path() / "skus");
    const std::string profile = (dir.path() / "skus/learned.toml").string();
    const auto result = learn((dir.path() / "run").string(), profile, {"--allow-simulated"});
    ASSERT_EQ(result.exitCode, 0) << result.err;
    EXPECT_TRUE(has(result.out, "8 used, 0 failed or outliers")) << result.out;
    for (int node = 0; node < kFleet; ++node) {
      const auto judged =
          runMuster({"judge", nodeRecord((dir.path() / "run").string(), node), "--sku", profile});
      EXPECT_EQ(judged.exitCode, 0) << judged.out << judged.err;
    }
    const auto other = run("other", 2, {"--seed", "4711", "--skus", (dir.path() / "skus").string()});
    EXPECT_EQ(other.exitCode, 0) << other.out << other.err;
  }
}

TEST(Baseline, LearnsFromTheJobsOfEachScope) {
  TempDir dir;
  const std::string two = dir.write("two.toml", std::string(kBaselinePlan) + R"([[stage]]
name = "all"
test = "collective.sweep"
scope = "cluster"
params = { op = "all_reduce", from = "1 MiB", to = "64 MiB", factor = 8 }
)")
                              .string();
  for (const char* scopes : {"device,node", "cluster"})
    ASSERT_EQ(runMuster({"run", two, "--simulate", scenario("h100x8-cluster-healthy"), "--nodes", "8",
                         "--scope", scopes, "--out", (dir.path() / "run" / scopes).string(), "--plain"})
                  .exitCode,
              0);
  const std::string profile = (dir.path() / "x.toml").string();
  const auto result = learn((dir.path() / "run").string(), profile, {"--allow-simulated"});
  ASSERT_EQ(result.exitCode, 0) << result.err;
  EXPECT_TRUE(has(result.out, "8 nodes of plan learn: 8 used")) << result.out;
  for (const char* scopes : {"device,node", "cluster"})
    EXPECT_EQ(runMuster({"judge", nodeRecord((dir.path() / "run" / scopes).string(), 3), "--sku", profile})
                  .exitCode,
              0)
        << scopes;
}

TEST(Baseline, PrintsANextStepThatWorksUnderAnotherName) {
  TempDir dir;
  const std::string skus = (dir.path() / "skus").string();
  std::filesystem::create_directory(skus);
  const auto result = learn(fleet().run, skus + "/ours.toml", {"--allow-simulated", "--name", "ours"});
  ASSERT_EQ(result.exitCode, 0) << result.err;
  EXPECT_TRUE(has(result.out, "--skus " + skus + " --sku ours\n")) << result.out;
  const std::vector<std::string> run = {"run",        fleet().planFile,
                                        "--simulate", scenario("h100x8-healthy"),
                                        "--skus",     skus,
                                        "--out",      (dir.path() / "run").string()};
  EXPECT_EQ(runMuster(run + std::vector<std::string>{"--sku", "ours"}).exitCode, 0);
  // Without it two profiles match: no run goes on without limits, whatever the plan allows.
  std::vector<std::string> lax = run;
  lax[1] = dir.write("lax.toml", "allow_unknown_sku = true\n" + readWhole(fleet().planFile)).string();
  lax.back() += "2";
  const auto refused = runMuster(lax);
  EXPECT_EQ(refused.exitCode, 2) << refused.out;
  EXPECT_TRUE(has(refused.err, "matches several profiles equally well (h100-sxm5-80gb, ours)"))
      << refused.err;
}

TEST(Baseline, RefusesABaseOfAnotherModel) {
  TempDir dir;
  const std::string out = (dir.path() / "x.toml").string();
  for (const std::vector<std::string>& more : {std::vector<std::string>{"--allow-simulated"}, kCorrect}) {
    const auto result =
        learn(fleet().run, out, more + std::vector<std::string>{"--base", plan("skus/b200.toml")});
    EXPECT_EQ(result.exitCode, 2) << result.out;
    EXPECT_TRUE(has(result.err, "gpu0 (NVIDIA H100 80GB HBM3, ")) << result.err;
    EXPECT_TRUE(has(result.err, "is not a b200: ")) << result.err;
    EXPECT_FALSE(std::filesystem::exists(out));
  }
}

TEST(Baseline, IsNotWidenedByNodesThatAreSlowAlike) {
  TempDir dir;
  std::string faults;
  for (const int node : {2, 6})
    for (int device = 0; device < 8; ++device)
      faults += fmt::format(
          "\n[[fault]]\nkind = \"slow\"\nnode = {}\ndevice = {}\nfactor = 0.94\nops = [\"gemm\"]\n", node,
          device);
  const std::string run =
      fleet().make((dir.path() / "run").string(), sickScenario(dir, faults), "42", kNodes);
  const auto result = learn(run, (dir.path() / "x.toml").string(), {"--allow-simulated"});
  EXPECT_EQ(result.exitCode, 0) << result.err;
  EXPECT_TRUE(has(result.out, "8 used, 2 failed or outliers")) << result.out;
  EXPECT_TRUE(has(result.out, "of one of two kinds of nodes, is ")) << result.out;
}

TEST(Baseline, RejectsAGpuThatIsFivePercentSlow) {
  const std::string profile = (fleet().dir.path() / "for-slow.toml").string();
  ASSERT_EQ(learn(fleet().run, profile, {"--allow-simulated"}).exitCode, 0);
  TempDir dir;
  const std::string sick = fleet().make("slow", sickScenario(dir, kSlowGpu), "99", 5);
  EXPECT_EQ(runMuster({"judge", nodeRecord(sick, 4)}).exitCode, 0) << "the shipped profile lets it pass";
  const auto judged = runMuster({"judge", nodeRecord(sick, 4), "--sku", profile});
  EXPECT_EQ(judged.exitCode, 1) << judged.out;
  EXPECT_TRUE(has(judged.out, "gpu2")) << judged.out;
  EXPECT_EQ(runMuster({"judge", nodeRecord(sick, 3), "--sku", profile}).exitCode, 0);
}

TEST(Baseline, LeavesOutASickGpuSoThatLimitsAreThoseOfTheHealthyPart) {
  TempDir dir;
  const std::string healthy = (dir.path() / "healthy.toml").string();
  const std::string with = (dir.path() / "with-sick.toml").string();
  const std::string sick = fleet().make("tenth", sickScenario(dir, kSlowGpu), "42", kNodes);
  ASSERT_EQ(learn(fleet().run, healthy, {"--allow-simulated"}).exitCode, 0);
  const auto result = learn(sick, with, {"--allow-simulated"});
  ASSERT_EQ(result.exitCode, 0) << result.err;
  EXPECT_TRUE(has(result.out, "node-0004 gpu2: compute.gemm_throughput")) << result.out;
  EXPECT_TRUE(has(result.out, "worse than the others")) << result.out;
  const auto diff = runMuster({"baseline", "diff", healthy, with});
  ASSERT_EQ(diff.exitCode, 0) << diff.err;
  // "(+0.12%)": what stands in brackets at the end of a line is how far a limit moved.
  for (const std::string& line : split(diff.out, '\n')) {
    const size_t open = line.rfind(" (");
    if (line.empty() || line.back() != ')' || open == std::string::npos) continue;
    EXPECT_LT(std::abs(std::strtod(line.c_str() + open + 2, nullptr)), 1.0) << line;
  }
  EXPECT_TRUE(has(diff.out, "compute.gemm_throughput dtype=bf16")) << diff.out;
}

TEST(Baseline, RefusesSimulatedRecordsUnlessToldOtherwise) {
  const std::string out = (fleet().dir.path() / "refused.toml").string();
  const auto result = learn(fleet().run, out);
  EXPECT_EQ(result.exitCode, 2);
  EXPECT_TRUE(has(result.err, "SIMULATED (scenario h100x8-healthy)")) << result.err;
  EXPECT_TRUE(has(result.err, "--allow-simulated")) << result.err;
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST(Baseline, NeverOverwritesUnlessForced) {
  const auto file = fleet().dir.write("mine.toml", "mine");
  const auto result = learn(fleet().run, file.string(), {"--allow-simulated"});
  EXPECT_EQ(result.exitCode, 2);
  EXPECT_TRUE(has(result.err, "--force")) << result.err;
  EXPECT_EQ(readWhole(file), "mine");
  EXPECT_EQ(learn(fleet().run, file.string(), {"--allow-simulated", "--force"}).exitCode, 0);
  EXPECT_NE(readWhole(file), "mine");
}

TEST(Baseline, RefusesTooFewNodesAndAFolderWithout) {
  TempDir dir;
  const std::string few = fleet().make("few", scenario("h100x8-healthy"), "1", 3);
  const auto result = learn(few, (dir.path() / "x.toml").string(), {"--allow-simulated"});
  EXPECT_EQ(result.exitCode, 2);
  EXPECT_TRUE(has(result.err, "3 nodes are too few")) << result.err;
  const auto none = learn(dir.path().string(), (dir.path() / "x.toml").string());
  EXPECT_EQ(none.exitCode, 2);
  EXPECT_TRUE(has(none.err, "no record found")) << none.err;
  EXPECT_EQ(learn((dir.path() / "nowhere").string(), (dir.path() / "x.toml").string()).exitCode, 2);
  EXPECT_FALSE(std::filesystem::exists(dir.path() / "x.toml"));
}

TEST(Baseline, RefusesAFleetThatIsSlowAsAWhole) {
  // Every GPU at 85%: the shipped profile rejects them all, and nothing may be learned from them.
  TempDir dir;
  std::string faults;
  for (int device = 0; device < 8; ++device)
    faults += "\n[[fault]]\nkind = \"slow\"\ndevice = " + std::to_string(device) + "\nfactor = 0.85\n";
  const std::string slow = fleet().make("slow-fleet", sickScenario(dir, faults), "1", 8);
  const auto result = learn(slow, (dir.path() / "x.toml").string(), {"--allow-simulated"});
  EXPECT_EQ(result.exitCode, 2) << result.out;
  EXPECT_TRUE(has(result.err, "8 of 8 nodes failed or are outliers")) << result.err;
  EXPECT_TRUE(has(result.err, "memory.bandwidth of gpu")) << result.err;
}

TEST(Baseline, RefusesTwoRecordsOfOneNode) {
  TempDir dir;
  const std::string copy = (dir.path() / "run").string();
  std::filesystem::copy(fleet().run, copy, std::filesystem::copy_options::recursive);
  std::filesystem::copy(nodeRecord(copy, 0), copy + "/again.json");
  const auto result = learn(copy, (dir.path() / "x.toml").string(), {"--allow-simulated"});
  EXPECT_EQ(result.exitCode, 2);
  EXPECT_TRUE(has(result.err, "2 records are of node")) << result.err;
}

/// The text with each `from` in it replaced.
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

TEST(Baseline, RefusesOneMachineUnderManyNames) {
  TempDir dir;
  const std::string run = (dir.path() / "run").string();
  for (int i = 0; i < kNodes; ++i)
    runMuster({"run", fleet().planFile, "--simulate", scenario("h100x8-healthy"), "--node-name",
               fmt::format("n{}", i), "--out", fmt::format("{}/n{}", run, i), "--plain"});
  const auto result = learn(run, (dir.path() / "x.toml").string(), {"--allow-simulated"});
  EXPECT_EQ(result.exitCode, 2);
  EXPECT_TRUE(has(result.err, "the same hardware appears under 10 names")) << result.err;
}

TEST(Baseline, TakesTheBaseFromTheProfileOfMostNodes) {
  TempDir dir;
  const std::string out = (dir.path() / "x.toml").string();
  copyIncluded("skus", dir.path() / "skus");
  const std::string lax =
      replaced(readWhole(plan("skus/common/gpu.toml")), "max = 10000\n", "max = 1000000000\n");
  ASSERT_TRUE(has(lax, "max = 1000000000\n"));
  dir.write("skus/common/gpu.toml", lax);
  dir.write("skus/h100-sxm5-80gb.toml", readWhole(plan("skus/h100-sxm5-80gb.toml")));
  const std::string odd = (dir.path() / "odd").string();
  runMuster({"run", fleet().planFile, "--simulate", scenario("h100x8-healthy"), "--nodes", "5", "--skus",
             (dir.path() / "skus").string(), "--out", odd, "--plain"});
  const std::string run = (dir.path() / "run").string();
  std::filesystem::copy(fleet().run, run, std::filesystem::copy_options::recursive);
  dir.write("run/sim-node-0000/record.json", readWhole(nodeRecord(odd, 0)));
  for (const std::vector<std::string>& more : {std::vector<std::string>{"--allow-simulated"}, kCorrect}) {
    const auto result = learn(run, out, more + std::vector<std::string>{"--force"});
    ASSERT_EQ(result.exitCode, 0) << result.err;
    EXPECT_TRUE(has(result.out, "sim-node-0000: profile h100-sxm5-80gb ")) << result.out;
    EXPECT_TRUE(has(result.out, "; 9 of 10 nodes have h100-sxm5-80gb ")) << result.out;
    EXPECT_FALSE(has(std::filesystem::exists(out) ? readWhole(out) : "", "1000000000"));
  }
  // A record that claims the digest of the others under another text is not believed either.
  const std::string record = readWhole(nodeRecord(fleet().run, 0));
  const std::string forged = replaced(record, "max = 10000\\n", "max = 1000000000\\n");
  ASSERT_NE(forged, record);
  dir.write("run/sim-node-0000/record.json", forged);
  ASSERT_EQ(learn(run, out, {"--allow-simulated", "--force"}).exitCode, 0);
  EXPECT_FALSE(has(readWhole(out), "1000000000"));
  // Two groups of the same size: none decides.
  for (int node = 0; node < 5; ++node)
    dir.write("run/sim-node-000" + std::to_string(node) + "/record.json", readWhole(nodeRecord(odd, node)));
  const auto refused = learn(run, out, {"--allow-simulated", "--force"});
  EXPECT_EQ(refused.exitCode, 2) << refused.out;
  EXPECT_TRUE(has(refused.err, "profile: no value has a majority: ")) << refused.err;
  EXPECT_TRUE(has(refused.err, "--base FILE")) << refused.err;
  const auto given =
      learn(run, out, {"--allow-simulated", "--force", "--base", plan("skus/h100-sxm5-80gb.toml")});
  EXPECT_EQ(given.exitCode, 0) << given.err;
  EXPECT_TRUE(has(given.out, "profiles differ: ")) << given.out;
}

TEST(Baseline, LeavesOutANodeWithAnotherNumberOfDevices) {
  TempDir dir;
  const std::string many =
      dir.write("many.toml", replaced(readWhole(scenario("h100x8-healthy")), "count = 8", "count = 64"))
          .string();
  const std::string odd = fleet().make("many", many, "1", 1);
  const std::string run = (dir.path() / "run").string();
  std::filesystem::copy(fleet().run, run, std::filesystem::copy_options::recursive);
  dir.write("run/sim-node-0000/record.json", readWhole(odd + "/record.json"));
  const auto result = learn(run, (dir.path() / "x.toml").string(), {"--allow-simulated"});
  ASSERT_EQ(result.exitCode, 0) << result.err;
  EXPECT_TRUE(has(result.out, "sim-node-0000: devices 64 x ")) << result.out;
  EXPECT_TRUE(has(result.out, "10 nodes of plan learn: 9 used, 1 failed or outliers")) << result.out;
}

TEST(Baseline, SetsATruncatedRecordAsideAndSaysSo) {
  TempDir dir;
  const std::string copy = (dir.path() / "run").string();
  std::filesystem::copy(fleet().run, copy, std::filesystem::copy_options::recursive);
  const std::string whole = readWhole(nodeRecord(copy, 5));
  dir.write("run/sim-node-0005/record.json", whole.substr(0, whole.size() / 2));
  const auto result = learn(copy, (dir.path() / "x.toml").string(), {"--allow-simulated"});
  EXPECT_EQ(result.exitCode, 0) << result.err;
  EXPECT_TRUE(has(result.out, "set aside: sim-node-0005/record.json")) << result.out;
  EXPECT_TRUE(has(result.out, "9 nodes of plan learn")) << result.out;
}

/// Of whatever plan it says it is.
TEST(Baseline, SetsARecordAsideThatWasEditedOrJudgedAgainAndLearnsFromTheOthers) {
  TempDir dir;
  const std::string copy = (dir.path() / "run").string();
  std::filesystem::copy(fleet().run, copy, std::filesystem::copy_options::recursive);
  const std::string edited = readWhole(nodeRecord(copy, 5));
  const size_t digit = edited.find("\"memory_bytes\": ") + std::string("\"memory_bytes\": ").size();
  dir.write("run/sim-node-0005/record.json", std::string(edited).replace(digit, 1, "1"));
  const auto judged = runMuster({"judge", nodeRecord(copy, 6), "--out", copy + "/judged"});
  EXPECT_EQ(judged.exitCode, 0) << judged.err;
  std::filesystem::remove_all(copy + "/sim-node-0006");
  const auto result = learn(copy, (dir.path() / "x.toml").string(), {"--allow-simulated"});
  EXPECT_EQ(result.exitCode, 0) << result.err;
  for (const char* path : {"sim-node-0005", "judged"})
    EXPECT_TRUE(has(result.out, std::string("set aside: ") + path + "/record.json")) << result.out;
  EXPECT_TRUE(has(result.out, "8 nodes of plan learn")) << result.out;
}

/// The fault of one node's GPUs that the plan's own limits do not see: GEMMs at 85%.
std::string slowGemms(int gpus) {
  std::string faults;
  for (int device = 0; device < gpus; ++device)
    faults += "\n[[fault]]\nkind = \"slow\"\ndevice = " + std::to_string(device) +
              "\nfactor = 0.85\nops = [\"gemm\"]\n";
  return faults;
}

TEST(Baseline, CorrectsTheLimitsThatOneMachineContradicts) {
  TempDir dir;
  const std::string run = fleet().make("one-slow-model", sickScenario(dir, slowGemms(8)), "1", 1);
  const std::string profile = (dir.path() / "corrected.toml").string();
  const auto result = learn(run, profile, kCorrect);
  ASSERT_EQ(result.exitCode, 0) << result.err;
  for (const char* part :
       {"SIMULATED", "looser; check that the machine is healthy",
        "compute.gemm_throughput dtype=bf16 size=8192: at least ", "was at least 617.4 TFLOP/s",
        "confirmed, kept as before", "memory.bandwidth op=copy: at least 2.697 TB/s"})
    EXPECT_TRUE(has(result.out, part)) << part << " in " << result.out;
  const std::string text = readWhole(profile);
  for (const char* part : {"name = \"h100-sxm5-80gb\"", "simulated = ", "SIMULATED, measured: ",
                           "on sim-node-0000", "in place of at least 617.4 TFLOP/s", "env.nvlinks_active"})
    EXPECT_TRUE(has(text, part)) << part;
  const std::string record = run + "/record.json";
  EXPECT_TRUE(has(text, "record sha256 " + sha256Hex(readWhole(record))));
  EXPECT_EQ(runMuster({"judge", record}).exitCode, 1) << "the shipped limits reject it";
  EXPECT_EQ(runMuster({"judge", record, "--sku", profile}).exitCode, 0);
}

TEST(Baseline, CorrectsNothingByASimulatedMachineUnlessToldOtherwise) {
  TempDir dir;
  const std::string out = (dir.path() / "x.toml").string();
  const std::string run = fleet().make("one", scenario("h100x8-healthy"), "1", 1);
  const auto refused = learn(run, out, {"--correct"});
  EXPECT_EQ(refused.exitCode, 2) << refused.out;
  EXPECT_TRUE(has(refused.err, "these records are SIMULATED")) << refused.err;
  EXPECT_EQ(learn(run, out, kCorrect + std::vector<std::string>{"--tolerance", "99%"}).exitCode, 2);
  EXPECT_EQ(learn(run, out, kCorrect + std::vector<std::string>{"--min-nodes", "5"}).exitCode, 2);
  EXPECT_EQ(learn(run, out, {"--allow-simulated", "--tolerance", "5%"}).exitCode, 2);
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST(Baseline, LoosensNothingByAFaultyDeviceOrMachine) {
  TempDir dir;
  const std::string out = (dir.path() / "x.toml").string();
  const std::string one = fleet().make("one-slow-gpu", sickScenario(dir, slowGemms(1)), "1", 1);
  EXPECT_EQ(runMuster({"judge", one + "/record.json"}).exitCode, 1) << "the profile rejects that GPU";
  const auto slow = learn(one, out, kCorrect);
  EXPECT_EQ(slow.exitCode, 0) << slow.err;
  EXPECT_FALSE(has(slow.out, "looser")) << slow.out;
  EXPECT_TRUE(has(slow.out, "dtype=bf16 size=8192: at least 617.4 TFLOP/s; measured")) << slow.out;
  // Wrong results are no matter of limits, whatever its rates.
  const std::string corrupt = fleet().make("corrupt", scenario("h100x8-silent-corruption"), "1", 1);
  const auto refused = learn(corrupt, out, kCorrect + std::vector<std::string>{"--force"});
  EXPECT_EQ(refused.exitCode, 2) << refused.out;
  EXPECT_TRUE(has(refused.err, "no healthy node: sim-node-0000: compute.gemm")) << refused.err;
}

TEST(Baseline, LearnsASkuThatNoProfileKnows) {
  TempDir dir;
  const std::string run = fleet().make("unknown", scenario("h100x8-unknown-sku"), "1", 8);
  const std::string profile = (dir.path() / "ours.toml").string();
  const auto result = learn(run, profile, {"--allow-simulated"});
  ASSERT_EQ(result.exitCode, 0) << result.err;
  EXPECT_EQ(runMuster({"judge", nodeRecord(run, 1)}).exitCode, 3) << "without a profile it stays incomplete";
  const auto judged = runMuster({"judge", nodeRecord(run, 1), "--sku", profile});
  EXPECT_EQ(judged.exitCode, 0) << judged.out << judged.err;
}

/// Changes the record of one node of `run`: smaller peaks, memory of its first device, or a shorter test.
void editSku(const std::string& run, int node, const std::function<void(Json&)>& change) {
  Json record = Json::parse(readWhole(nodeRecord(run, node)));
  record.erase("mac");
  change(record);
  std::ofstream(nodeRecord(run, node)) << record.dump();
}

void lowerPeaks(Json& record) {
  for (Json& peak : record["peaks"]) peak = peak.get<double>() * 0.8;
  for (Json& device : record["inventory"]["devices"]) device["peaks"] = record["peaks"];
}

void shrinkMemory(Json& record) {
  for (Json& device : record["inventory"]["devices"]) device["memory_bytes"] = 40'000'000'000;
  for (Json& stage : record["stages"])
    for (Json& group : stage["measurements"])
      if (group["metric"] == "env.device_memory") {
        group["exponent"] = 10;
        for (Json& samples : group["rows"]["samples"]) samples = {4};
      }
}

void shortenTest(Json& record) {
  for (Json& stage : record["stages"])
    for (Json& one : stage["cases"])
      if (one["params"].contains("max_time")) one["params"]["max_time"] = 0.1;
}

TEST(Baseline, LetsTheFirstNodeOfAnUnknownSkuDecideNothing) {
  TempDir dir;
  const std::string run = fleet().make("unknown-ten", scenario("h100x8-unknown-sku"), "1", kNodes);
  const std::string usual = (dir.path() / "usual.toml").string();
  const auto plain = learn(run, usual, {"--allow-simulated", "--name", "ours"});
  ASSERT_EQ(plain.exitCode, 0) << plain.err;
  // What a profile says up to its limits: which devices it is for, their peaks, and fixed parameters.
  const auto taken = [](const std::string& file) {
    const std::string text = readWhole(file);
    const size_t start = text.find("schema = 1"), facts = text.find("[facts]"),
                 params = text.find("[params.");
    return text.substr(start, facts - start) + text.substr(params, text.find("[[expect]]") - params);
  };
  const std::vector<std::pair<std::function<void(Json&)>, std::string>> changes = {
      {lowerPeaks, "sim-node-0000: peak "},
      {shrinkMemory, "sim-node-0000: memory 40 GB; 9 of 10 nodes have 102 GB"},
      {shortenTest, "sim-node-0000: max_time of "}};
  for (const auto& [change, why] : changes) {
    const std::string odd = (dir.path() / "odd").string(), out = (dir.path() / "odd.toml").string();
    std::filesystem::remove_all(odd);
    std::filesystem::copy(run, odd, std::filesystem::copy_options::recursive);
    editSku(odd, 0, change);
    const auto result = learn(odd, out, {"--allow-simulated", "--name", "ours", "--force"});
    ASSERT_EQ(result.exitCode, 0) << result.err;
    EXPECT_TRUE(has(result.out, why)) << result.out;
    EXPECT_TRUE(has(result.out, "10 nodes of plan learn: 9 used, 1 failed or outliers")) << result.out;
    EXPECT_EQ(taken(out), taken(usual)) << why;
    for (int node = 1; node < 5; ++node) editSku(odd, node, change);
    const auto refused = learn(odd, out, {"--allow-simulated", "--name", "ours", "--force"});
    EXPECT_EQ(refused.exitCode, 2) << refused.out;
    EXPECT_TRUE(has(refused.err, ": no value has a majority: ")) << refused.err;
    EXPECT_TRUE(has(refused.err, "--base FILE")) << refused.err;
  }
}

/// A shipped profile under another name, as one that was learned; `facts` says from what.
std::string learnedCopy(const TempDir& dir, const std::string& shipped, const std::string& facts) {
  std::string text = readWhole(plan("skus/" + shipped + ".toml"));
  const std::string name = "name = \"" + shipped + "\"";
  text.replace(text.find(name), name.size(), "name = \"learned\"");
  const size_t at = text.find("[facts]\n");
  if (at == std::string::npos)
    text += "\n[facts]\n" + facts;
  else
    text.insert(at + 8, facts);
  copyIncluded("skus", dir.path() / "skus");
  return dir.write("skus/learned.toml", text).string();
}

const std::string kOfHardware = "learned_from = \"40 nodes under plan node-full\"\n";
const std::string kOfScenario = kOfHardware + "simulated = \"SIMULATED: learned from scenario made-up\"\n";

TEST(Baseline, OfASimulationNeverJudgesRealHardware) {
  TempDir dir;
  const std::string profile = learnedCopy(dir, "host", kOfScenario);
  const std::string real = dir.write("real.toml", fakePlan("fake-ok")).string();
  const std::string out = (dir.path() / "run").string();
  const std::vector<std::string> skus = {"--skus", (dir.path() / "skus").string(), "--out", out};
  const auto named =
      runMuster(std::vector<std::string>{"run", real, "--sku", "learned"} + withFakes() + skus);
  EXPECT_EQ(named.exitCode, 2) << named.out;
  EXPECT_TRUE(has(named.err, "profile learned was learned from simulated records")) << named.err;
  EXPECT_TRUE(has(named.err, "muster baseline learn RUN -o FILE")) << named.err;
  EXPECT_FALSE(std::filesystem::exists(out)) << "refused before anything ran";

  ASSERT_EQ(runMuster(std::vector<std::string>{"run", real, "--out", out} + withFakes()).exitCode, 0);
  const std::string record = out + "/record.json";
  const std::string before = readWhole(record);
  const auto judged = runMuster({"judge", record, "--sku", profile, "--out", out + "2"});
  EXPECT_EQ(judged.exitCode, 2) << judged.out;
  EXPECT_TRUE(has(judged.err, "come from a scenario")) << judged.err;
  EXPECT_FALSE(std::filesystem::exists(out + "2"));
  EXPECT_EQ(readWhole(record), before);
  // The same limits without the mark: it is the mark that was refused.
  const std::string plain = learnedCopy(dir, "host", kOfHardware);
  EXPECT_EQ(runMuster({"judge", record, "--sku", plain}).exitCode, 0);
}

TEST(Baseline, OfRealHardwareNeverJudgesASimulation) {
  TempDir dir;
  const std::string profile = learnedCopy(dir, "h100-sxm5-80gb", kOfHardware);
  const auto judged = runMuster({"judge", nodeRecord(fleet().run, 0), "--sku", profile});
  EXPECT_EQ(judged.exitCode, 2) << judged.out;
  EXPECT_TRUE(has(judged.err, "was learned from real records (40 nodes")) << judged.err;
  const auto run =
      runMuster({"run", fleet().planFile, "--simulate", scenario("h100x8-healthy"), "--sku", "learned",
                 "--skus", (dir.path() / "skus").string(), "--out", (dir.path() / "run").string()});
  EXPECT_EQ(run.exitCode, 2) << run.out;
  EXPECT_TRUE(has(run.err, "this run is simulated")) << run.err;
}

TEST(Baseline, ThatTheDevicesMatchIsHeldAgainstTheRunAsWell) {
  // No name is given: the profile takes the shipped one's place and the inventory chooses it.
  TempDir dir;
  std::string text = readWhole(learnedCopy(dir, "h100-sxm5-80gb", kOfHardware));
  text.replace(text.find("name = \"learned\""), 16, "name = \"h100-sxm5-80gb\"");
  dir.write("skus/learned.toml", text);
  const auto run = runMuster({"run", fleet().planFile, "--simulate", scenario("h100x8-healthy"), "--skus",
                              (dir.path() / "skus").string(), "--out", (dir.path() / "run").string()});
  EXPECT_EQ(run.exitCode, 2) << run.out;
  EXPECT_TRUE(has(run.err, "this run is simulated")) << run.err;
  EXPECT_FALSE(std::filesystem::exists(dir.path() / "run/record.json"));
}

TEST(Baseline, DiffSaysWhichLimitsMove) {
  const std::string profile = (fleet().dir.path() / "to-compare.toml").string();
  ASSERT_EQ(learn(fleet().run, profile, {"--allow-simulated"}).exitCode, 0);
  const auto result = runMuster({"baseline", "diff", plan("skus/h100-sxm5-80gb.toml"), profile});
  EXPECT_EQ(result.exitCode, 0) << result.err;
  for (const char* part : {"added", "compute.gemm_throughput dtype=bf16 size=8192 with algorithm=default ",
                           ": at least 66", "limits as before", "facts.simulated"})
    EXPECT_TRUE(has(result.out, part)) << part << " in " << result.out;
  EXPECT_EQ(runMuster({"baseline", "diff", profile, "/nowhere.toml"}).exitCode, 2);
}

}  // namespace
}  // namespace muster::testing
