// SPDX-License-Identifier: Apache-2.0
// `muster run --budget`: what has no time left is not begun, and the slices of a run add up to one verdict.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/e2e/muster.h"

namespace muster::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

/// Three stages of 30 virtual seconds; the last one may be skipped, but not for lack of time.
constexpr const char* kSlicesPlan = R"(schema = 1
name = "slices"
[[stage]]
name = "first"
test = "compute.sustained"
timeout = "60s"
params = { size = 8192, dtype = "bf16", duration = "30s", window = "1s" }
[[stage]]
name = "second"
test = "compute.sustained"
needs = ["first"]
timeout = "60s"
params = { size = 8192, dtype = "bf16", duration = "30s", window = "1s" }
[[stage]]
name = "last"
test = "compute.sustained"
timeout = "40s"
required = false
params = { size = 8192, dtype = "bf16", duration = "30s", window = "1s" }
)";

class Budget : public ::testing::Test {
 protected:
  ProcessResult run(const std::string& scene, const std::vector<std::string>& more) {
    return runMuster(
        std::vector<std::string>{"run", plan_.string(), "--simulate", scenario(scene), "--out", out()} +
        more);
  }
  ProcessResult resume(const std::vector<std::string>& more) {
    return runMuster(std::vector<std::string>{"run", "--resume", out()} + more);
  }
  [[nodiscard]] std::string out() const { return (dir_.path() / "run").string(); }
  [[nodiscard]] Record record() const { return recordIn(out()); }
  /// "ran skipped skipped" of the plan's stages.
  [[nodiscard]] std::string states() const {
    std::string text;
    for (const StageRecord& stage : record().stages)
      if (stage.name.find(':') == std::string::npos) text += std::string(nameOf(stage.state)) + " ";
    return text;
  }
  TempDir dir_;
  fs::path plan_ = dir_.write("plan.toml", kSlicesPlan);
};

TEST_F(Budget, AddsUpToOneVerdict) {
  const auto first = run("h100x8-healthy", {"--budget", "70s"});
  EXPECT_EQ(first.exitCode, 3) << first.out << first.err;
  EXPECT_EQ(states(), "ran skipped skipped ") << "30 s are gone, 40 s are less than a timeout";
  EXPECT_THAT(first.out, HasSubstr("not run yet: second, last; stage second needs a budget of at least 1m"));
  EXPECT_THAT(first.out, HasSubstr("muster run --resume " + out()));
  EXPECT_EQ(record().acceptance, Acceptance::kIncomplete);
  EXPECT_THAT(record().reasons.front(),
              HasSubstr("the time budget of 1m10s (--budget) ended before second, last"));
  EXPECT_EQ(runMuster({"report", out() + "/record.json"}).exitCode, 3);

  EXPECT_EQ(resume({"--budget", "50s"}).exitCode, 3);
  EXPECT_EQ(states(), "ran skipped skipped ") << "the short one must not overtake";
  EXPECT_EQ(resume({"--budget", "65s"}).exitCode, 3);
  EXPECT_EQ(states(), "ran ran skipped ");
  EXPECT_EQ(record().acceptance, Acceptance::kIncomplete) << "a stage without time blocks, required or not";
  const Record sliced = [&] {
    EXPECT_EQ(resume({}).exitCode, 0);
    return record();
  }();
  EXPECT_EQ(states(), "ran ran ran ");
  EXPECT_EQ(sliced.acceptance, Acceptance::kAccepted);
  EXPECT_EQ(sliced.resumed, 3);
  fs::remove_all(out());
  EXPECT_EQ(run("h100x8-healthy", {}).exitCode, 0);
  EXPECT_EQ(record().accounting.total() + 1, sliced.accounting.total())
      << "as one undivided run, but that a resumed one also checks that the node did not reboot";
}

TEST_F(Budget, KeepsAFailureOfAnEarlierSlice) {
  EXPECT_EQ(run("h100x8-one-slow-gpu", {"--budget", "70s"}).exitCode, 1);
  EXPECT_EQ(record().acceptance, Acceptance::kRejected);
  EXPECT_EQ(states(), "ran skipped skipped ");
  EXPECT_EQ(resume({}).exitCode, 1);
  EXPECT_EQ(states(), "ran skipped ran ") << "its prerequisite failed";
}

TEST_F(Budget, IsNotAccountedForAsAFleet) {
  run("h100x8-healthy", {"--budget", "95s"});
  EXPECT_EQ(states(), "ran ran skipped ");
  const auto fleet = runMuster({"fleet", out(), "--expect", dir_.write("n.txt", "sim-node-0000\n").string(),
                                "--out", (dir_.path() / "fleet").string()});
  EXPECT_EQ(fleet.exitCode, 3) << fleet.out;
}

TEST_F(Budget, IsRefusedWhereNodesWaitForEachOther) {
  const auto result =
      runMuster({"run", plan("cluster.toml"), "--simulate", scenario("h100x8-cluster-healthy"), "--nodes",
                 "2", "--out", out(), "--budget", "10m"});
  EXPECT_EQ(result.exitCode, 2);
  EXPECT_THAT(result.err, HasSubstr("add --scope device,node"));
}

}  // namespace
}  // namespace muster::testing
