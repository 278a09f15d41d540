// SPDX-License-Identifier: Apache-2.0
// A node of a real Slurm that really is sick: from the run that finds it to the run that takes it back.
#include "runner/record/record.h"
#include "tests/slurm/slurm_run.h"
#include "tests/support/quota_group.h"

namespace muster::testing {
namespace fs = std::filesystem;
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class SlurmSick : public SlurmTest {
 protected:
  /// What a fleet report says of a node: its state and why.
  static std::string of(const fs::path& run, const std::string& node) {
    const Json fleet = Json::parse(readWhole(run / "fleet" / "fleet.json"), nullptr, false);
    for (const Json& one : fleet.value("nodes", Json::array()))
      if (one.value("node", "") == node) return one.value("state", "") + ": " + one.value("reason", "");
    return "not there";
  }
};

TEST_F(SlurmSick, ANodeUnderACpuQuotaIsRejectedDrainedRepairedAndTakenBack) {
  const QuotaGroup quota(0.5);
  if (!quota.ready()) GTEST_SKIP() << "a cpu control group cannot be made here";
  ASSERT_TRUE(quota.add(slurm().slurmd(3)));
  slurm().set("node4", "DRAIN", "fan is broken");
  const std::string plan = (distDir() / "share" / "muster" / "plans" / "environment.toml").string();
  const fs::path run = newRun();

  const ProcessResult found = submit(plan, run, {"--wait"});
  EXPECT_EQ(found.exitCode, 1) << found.out << found.err;
  EXPECT_THAT(found.out, ContainsRegex("node3 +rejected +.*env.cpu_quota_ratio"));
  EXPECT_THAT(found.out, ContainsRegex("node4 +drained +drained fan is broken"));
  EXPECT_THAT(of(run, "node1"), StartsWith("accepted"));
  EXPECT_THAT(of(run, "node2"), StartsWith("accepted"));
  EXPECT_THAT(of(run, "node3"), StartsWith("rejected"));
  EXPECT_THAT(of(run, "node4"), Not(StartsWith("accepted")));
  EXPECT_THAT(slurm().muster({"status", run.string()}).out, HasSubstr("node3                rejected"));
  EXPECT_THAT(readWhole(run / "records" / "nodes" / "node3" / "record.json"), HasSubstr(quota.name()))
      << "the control group is named";

  const ProcessResult drained = slurm().muster({"drain", run.string(), "--apply"});
  EXPECT_EQ(drained.exitCode, 0) << drained.err;
  EXPECT_EQ(slurm().state("node3"), "drained");
  EXPECT_THAT(slurm().reason("node3"), StartsWith("muster: environment-"));
  EXPECT_THAT(slurm().reason("node3"), HasSubstr("env.cpu_quota_ratio"));
  EXPECT_EQ(slurm().state("node1"), "idle");
  EXPECT_EQ(slurm().state("node2"), "idle");
  EXPECT_EQ(slurm().reason("node4"), "fan is broken");

  // The quota is lifted, the fan replaced: our drain is undone by us, the other one by whoever made it.
  quota.release();
  EXPECT_EQ(slurm().muster({"undrain", run.string(), "--apply"}).exitCode, 0);
  EXPECT_EQ(slurm().state("node4"), "drained");
  slurm().set("node4", "RESUME");
  ASSERT_TRUE(
      within(60, [] { return slurm().state("node3") == "idle" && slurm().state("node4") == "idle"; }));
  const ProcessResult again = slurm().muster({"resume", run.string(), "--rejected", "--wait"});
  EXPECT_EQ(again.exitCode, 0) << again.out << again.err;
  EXPECT_THAT(again.out, HasSubstr("retesting 2 nodes with the plan: node[3-4]\n"));
  EXPECT_THAT(recorded(run), ElementsAre("node1", "node2", "node3", "node4"));
}

}  // namespace
}  // namespace muster::testing
