// SPDX-License-Identifier: Apache-2.0
// Partial runs (--only, --device): what they measure, and that nothing takes them for an acceptance.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "runner/core/json.h"
#include "tests/e2e/muster.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

/// Stages of all devices alone, one of which needs another; one stage of the whole node.
constexpr const char* kPartsPlan = R"(schema = 1
name = "parts"
[expectations.peers]
metric = "compute.gemm_throughput"
within = "5%"
of = "node"
source = "test"
[[stage]]
name = "gemm"
test = "compute.gemm"
timeout = "4m"
params = { size = 8192, dtype = "bf16" }
expect = ["peers", { metric = "compute.gemm_throughput", min = "650 TFLOP/s", source = "test" }]
[[stage]]
name = "host-copy"
test = "memory.host_copy"
scope = "node"
timeout = "3m"
params = { numa = ["near"] }
[[stage]]
name = "sustained"
test = "compute.sustained"
needs = ["gemm"]
timeout = "3m"
params = { size = 8192, dtype = "bf16", duration = "5s", window = "1s" }
)";

class PartialRun : public ::testing::Test {
 protected:
  ProcessResult run(const std::string& scene, const std::string& out, const std::vector<std::string>& more) {
    return runMuster(
        std::vector<std::string>{"run", plan_.string(), "--simulate", scenario(scene), "--out", path(out)} +
        more);
  }
  [[nodiscard]] std::string path(const std::string& name) const { return (dir_.path() / name).string(); }
  [[nodiscard]] Record record(const std::string& out) const { return recordIn(dir_.path() / out); }
  ProcessResult fleet(const std::string& folder) {
    return runMuster({"fleet", path(folder), "--expect", dir_.write("nodes.txt", "sim-node-0000\n").string(),
                      "--out", path("report")});
  }
  TempDir dir_;
  fs::path plan_ = dir_.write("plan.toml", kPartsPlan);
};

TEST_F(PartialRun, MeasuresOnlyTheStageAndTheDevice) {
  const auto result = run("h100x8-healthy", "a", {"--only", "gemm", "--device", "gpu5,gpu2"});
  EXPECT_EQ(result.exitCode, 3) << result.out << result.err;
  const Record partial = record("a");
  EXPECT_EQ(partial.acceptance, Acceptance::kPartial);
  EXPECT_EQ(partial.reasons.front(), "partial run: only stage gemm on gpu5, gpu2 (--only, --device)");
  for (const Measurement& m : stageOf(partial, "gemm").measurements)
    if (m.metric == "compute.gemm_throughput") {
      EXPECT_TRUE(m.device == "gpu2" || m.device == "gpu5");
    }
  for (const Verdict& v : stageOf(partial, "gemm").verdicts)
    if (v.expectation && v.expectation->kind == CheckKind::kWithin) {
      EXPECT_EQ(v.outcome, Outcome::kSkipped) << v.detail;
      EXPECT_THAT(v.detail, HasSubstr("this partial run left out other devices"));
    }
  for (const char* left : {"host-copy", "sustained"}) {
    EXPECT_EQ(stageOf(partial, left).state, StageState::kSkipped);
    EXPECT_EQ(stageOf(partial, left).reason, "left out by --only gemm");
    EXPECT_TRUE(stageOf(partial, left).measurements.empty());
  }
  EXPECT_THAT(result.out, HasSubstr(" PARTIAL "));
  EXPECT_THAT(readWhole(dir_.path() / "a/report.html"), HasSubstr("PARTIAL RUN"));
  EXPECT_THAT(readWhole(dir_.path() / "a/junit.xml"),
              HasSubstr("<error message=\"PARTIAL: partial run: only"));
}

TEST_F(PartialRun, IsRejectedForWhatItFailed) {
  const auto result = run("h100x8-one-slow-gpu", "a", {"--only", "gemm", "--device", "gpu5"});
  EXPECT_EQ(result.exitCode, 1) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr(" REJECTED "));
  EXPECT_THAT(result.out, HasSubstr(" PARTIAL "));
  EXPECT_EQ(run("h100x8-one-slow-gpu", "b", {"--only", "gemm", "--device", "gpu4"}).exitCode, 3);
}

TEST_F(PartialRun, LeavesOutPrerequisitesAndSaysSo) {
  run("h100x8-healthy", "a", {"--only", "sustained"});
  const StageRecord stage = stageOf(record("a"), "sustained");
  EXPECT_EQ(stage.state, StageState::kRan);
  EXPECT_THAT(stage.log, ::testing::Contains(HasSubstr("it needs gemm, which this partial run left out")));
  run("h100x8-one-slow-gpu", "b", {"--only", "sustained,gemm"});
  EXPECT_EQ(stageOf(record("b"), "sustained").reason, "prerequisite stage gemm did not pass (fail)")
      << "one that is named is obeyed";
}

TEST_F(PartialRun, LeavesOutStagesOfTheWholeNode) {
  EXPECT_EQ(run("h100x8-healthy", "a", {"--device", "gpu3"}).exitCode, 3);
  const Record partial = record("a");
  EXPECT_EQ(partial.acceptance, Acceptance::kPartial);
  EXPECT_THAT(stageOf(partial, "host-copy").reason, HasSubstr("a stage of scope node needs all devices"));
  EXPECT_EQ(stageOf(partial, "sustained").state, StageState::kRan);
}

TEST_F(PartialRun, RefusesNamesAndCombinationsThatMeanNothing) {
  struct {
    std::vector<std::string> options;
    const char* said;
  } const kWrong[] = {
      {{"--only", "gem"}, "no stage \"gem\"; did you mean \"gemm\"?; stages: gemm, host-copy, sustained"},
      {{"--only", "gemm", "--device", "gpu55"},
       "no device \"gpu55\"; did you mean \"gpu5\"?; devices: gpu0,"},
      {{"--only", "host-copy", "--device", "gpu5"}, "its scope is node, which needs all devices"},
      {{"--only", "gemm", "--scope", "node"}, "its scope is device, and --scope is node"},
      {{"--device", "gpu5", "--scope", "node"}, "no stage of scope device"},
  };
  for (const auto& wrong : kWrong) {
    const auto result = run("h100x8-healthy", "a", wrong.options);
    EXPECT_EQ(result.exitCode, 2) << wrong.said;
    EXPECT_THAT(result.err, HasSubstr(wrong.said));
    EXPECT_FALSE(fs::exists(dir_.path() / "a")) << "what did not begin leaves nothing";
  }
}

TEST_F(PartialRun, StaysPartialWhenItIsJudgedAgainOrResumed) {
  run("h100x8-healthy", "a", {"--device", "gpu3"});
  const auto record_ = path("a") + "/record.json";
  EXPECT_EQ(runMuster({"report", record_}).exitCode, 3);
  EXPECT_EQ(runMuster({"judge", record_, "--out", path("judged")}).exitCode, 3);
  EXPECT_EQ(record("judged").acceptance, Acceptance::kPartial);

  fs::remove(record_);
  const auto other = runMuster({"run", "--resume", path("a"), "--device", "gpu4"});
  EXPECT_EQ(other.exitCode, 2);
  EXPECT_THAT(other.err, HasSubstr("which do not include --device"));
  EXPECT_EQ(runMuster({"run", "--resume", path("a")}).exitCode, 3);
  EXPECT_EQ(record("a").acceptance, Acceptance::kPartial);
  EXPECT_EQ(record("a").selection.devices, std::vector<std::string>{"gpu3"});

  auto journal = readWhole(dir_.path() / "a/journal.jsonl");
  journal.replace(journal.find("[\"gpu3\"]"), 8, "[]");
  dir_.write("a/journal.jsonl", journal);
  const auto edited = runMuster({"run", "--resume", path("a")});
  EXPECT_EQ(edited.exitCode, 2) << edited.out;
  EXPECT_THAT(edited.err, HasSubstr("ran on a part of the devices"));

  run("h100x8-healthy", "whole", {});
  fs::remove(path("whole") + "/record.json");
  const auto whole = runMuster({"run", "--resume", path("whole"), "--only", "gemm"});
  EXPECT_EQ(whole.exitCode, 2);
  EXPECT_THAT(whole.err, HasSubstr("which do not include --only"));
}

TEST_F(PartialRun, NeverHelpsANodeInAFleetAndCountsAgainstItWhenRejected) {
  // A plan of device stages alone: nothing but the selection says that something is missing.
  std::string text = kPartsPlan;
  text.erase(text.find("[[stage]]\nname = \"host-copy\""),
             text.find("[[stage]]\nname = \"sustained\"") - text.find("[[stage]]\nname = \"host-copy\""));
  plan_ = dir_.write("plan.toml", text);
  run("h100x8-healthy", "fleet/partial", {"--device", "gpu3"});
  const auto alone = fleet("fleet");
  EXPECT_EQ(alone.exitCode, 3) << alone.out << alone.err;
  EXPECT_THAT(alone.out, HasSubstr("does not count as a run of the node: partial run"));

  run("h100x8-healthy", "fleet/whole", {});
  const auto both = fleet("fleet");
  EXPECT_EQ(both.exitCode, 0) << "a clean partial run takes nothing from a complete one\n" << both.out;

  run("h100x8-one-slow-gpu", "fleet/failed", {"--only", "gemm", "--device", "gpu5"});
  const auto failed = fleet("fleet");
  EXPECT_EQ(failed.exitCode, 1) << failed.out;
}

TEST_F(PartialRun, DoesNotBlameAWaiverForADeviceThatItLeftOut) {
  const auto waivers = dir_.write("waivers.toml", R"(schema = 1
[[waiver]]
stage = "gemm"
metric = "compute.gemm_throughput"
device = "gpu5"
node = "sim-node-0000"
reason = "test"
approver = "test"
expires = "2199-12-31"
)");
  const std::vector<std::string> waived = {"--waivers", waivers.string()};
  EXPECT_EQ(run("h100x8-healthy", "a", std::vector<std::string>{"--device", "gpu2"} + waived).exitCode, 3);
  EXPECT_EQ(record("a").acceptance, Acceptance::kPartial);
  EXPECT_EQ(run("h100x8-one-slow-gpu", "b", std::vector<std::string>{"--only", "gemm"} + waived).exitCode, 3);
  EXPECT_EQ(record("b").acceptance, Acceptance::kPartial) << "all that it failed is waived";
}

TEST_F(PartialRun, EntersNeitherHistoryNorProfile) {
  run("h100x8-healthy", "clean/a", {"--device", "gpu3"});
  run("h100x8-one-slow-gpu", "failed/a", {"--only", "gemm"});
  for (const char* folder : {"clean", "failed"}) {
    const auto added = runMuster({"history", "add", path(folder), "--db", path("h.sqlite")});
    EXPECT_EQ(added.exitCode, 3) << added.out;
    EXPECT_THAT(added.out, HasSubstr("0 added"));
    EXPECT_THAT(added.err, HasSubstr("partial run"));
    const auto learned = runMuster(
        {"baseline", "learn", path(folder), "--correct", "-o", path("mine.toml"), "--allow-simulated"});
    EXPECT_NE(learned.exitCode, 0) << learned.out;
    EXPECT_THAT(learned.out + learned.err, HasSubstr("partial run"));
    EXPECT_FALSE(fs::exists(path("mine.toml")));
  }
}

TEST_F(PartialRun, IsWhatAFindingSaysToRunAgain) {
  run("h100x8-one-slow-gpu", "a", {});
  const auto told = runMuster({"report", path("a") + "/record.json"});
  const std::string wanted = fmt::format("muster run {} --simulate {} --only gemm --device gpu5",
                                         plan_.string(), scenario("h100x8-one-slow-gpu"));
  ASSERT_THAT(told.out, HasSubstr(wanted));
  EXPECT_THAT(readWhole(dir_.path() / "a/report.html"), HasSubstr("--only gemm --device gpu5"));
  ProcessOptions here;
  here.folder = dir_.path();
  const auto again = runProcess({"bash", "-c", (distDir() / "bin").string() + "/" + wanted}, here);
  EXPECT_EQ(again.exitCode, 1) << again.out << again.err;
}

}  // namespace
}  // namespace muster::testing
