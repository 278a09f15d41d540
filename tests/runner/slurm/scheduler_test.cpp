// SPDX-License-Identifier: Apache-2.0
#include "runner/slurm/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runner/slurm/command.h"

namespace muster::slurm {
namespace {

using ::testing::HasSubstr;

NodeInfo inState(const std::string& state) {
  return {"n1", state, "root", "", 0};
}

TEST(NodeLine, KeepsBarsInsideTheReason) {
  const auto node = parseNodeLine("gpu7|drained*|gpu:h100:8(S:0-1)|alice|fan | broken | 2 of 3");
  ASSERT_TRUE(node.ok());
  EXPECT_EQ(node->name, "gpu7");
  EXPECT_EQ(node->reason, "fan | broken | 2 of 3");
  EXPECT_EQ(node->user, "alice");
  EXPECT_EQ(node->gpus, 8);
}

TEST(NodeLine, RefusesWhatIsNone) {
  for (const char* line : {"", "gpu7|idle", "a b|idle|(null)|root|none", "|idle|(null)|root|none"})
    EXPECT_FALSE(parseNodeLine(line).ok()) << line;
}

TEST(NodeInfo, KnowsWhatGetsNoWork) {
  for (const char* state :
       {"idle", "mixed", "allocated", "completing", "planned", "reserved", "maint", "idle~", "idle#"})
    EXPECT_TRUE(inState(state).available()) << state;
  for (const char* state : {"down", "down*", "drained", "draining", "draining@", "drained*", "fail",
                            "failing", "error", "idle*", "unknown", "inval", "future"})
    EXPECT_FALSE(inState(state).available()) << state;
  EXPECT_TRUE(inState("draining").drained());
  EXPECT_TRUE(inState("drained*").drained());
  EXPECT_FALSE(inState("down*").drained());
  EXPECT_TRUE(inState("unknown*").unknown());
  EXPECT_TRUE(inState("unk").unknown());
  EXPECT_FALSE(inState("down").unknown());
}

TEST(Gres, CountsGpusAmongOtherThings) {
  EXPECT_EQ(gpusOf("gpu:h100:8(S:0-1),nic:2"), 8);
  EXPECT_EQ(gpusOf("gpu:4"), 4);
  EXPECT_EQ(gpusOf("gpu:a100:2(S:0,2),gpu:h100:6(S:1)"), 8);
  EXPECT_EQ(gpusOf("gpu"), 1);
  EXPECT_EQ(gpusOf("(null)"), 0);
  EXPECT_EQ(gpusOf(""), 0);
}

TEST(JobInfo, IsLiveUntilItsEnd) {
  for (const char* state : {"PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED"})
    EXPECT_TRUE((JobInfo{"1", "1", "1", state, "", "", ""}.live())) << state;
  for (const char* state :
       {"COMPLETED", "FAILED", "NODE_FAIL", "CANCELLED", "TIMEOUT", "DEADLINE", "OUT_OF_MEMORY", ""})
    EXPECT_FALSE((JobInfo{"1", "1", "1", state, "", "", ""}.live())) << state;
}

TEST(JobInfo, IsReadFromTheAccounting) {
  const auto job = parseAccountedLine("104|101_3|1000|FAILED|1:0|n3|plan-1|with a bar");
  ASSERT_TRUE(job.ok()) << job.error().text();
  EXPECT_EQ(job->number, "104");
  EXPECT_EQ(job->job, "101");
  EXPECT_EQ(job->id, "101_3");
  EXPECT_EQ(job->user, 1000);
  EXPECT_EQ(job->state, "FAILED");
  EXPECT_EQ(job->exitCode, 1);
  EXPECT_EQ(job->nodes, "n3");
  EXPECT_EQ(job->comment, "plan-1|with a bar");
  EXPECT_EQ(parseAccountedLine("90|90|0|CANCELLED by 0|0:15|n1|")->state, "CANCELLED");
  EXPECT_EQ(parseAccountedLine("90|90|0|FAILED|0:9|n1|")->exitCode, 137);
  for (const char* line : {"", "104|101_3|1000|FAILED|1:0|n3", "x|101_3|1000|FAILED|1:0|n3|",
                           "104|1|root|FAILED|1:0|n3|", "104|1|0|FAILED||n3|", "104|1|0|FAILED|1.5:0|n3|"})
    EXPECT_FALSE(parseAccountedLine(line).ok()) << line;
}

TEST(Command, TellsExitSignalAndOutputsApart) {
  const auto result = runCommand({"sh", "-c", "echo out; echo err >&2; exit 7"}, 30);
  ASSERT_TRUE(result.ok()) << result.error().text();
  EXPECT_EQ(result->exitCode, 7);
  EXPECT_EQ(result->out, "out\n");
  EXPECT_EQ(result->err, "err\n");
  const auto killed = runCommand({"sh", "-c", "kill -KILL $$"}, 30);
  ASSERT_TRUE(killed.ok());
  EXPECT_EQ(killed->signal, 9);
}

TEST(Command, LeavesOutVariablesByTheirBeginning) {
  setenv("SBATCH_REQUEUE", "1", 1);
  setenv("SBATCHLESS", "stays", 1);
  const auto result = runCommand({"env"}, 30, {"SBATCH_"});
  ASSERT_TRUE(result.ok());
  EXPECT_THAT(result->out, Not(HasSubstr("SBATCH_REQUEUE")));
  EXPECT_THAT(result->out, HasSubstr("SBATCHLESS=stays"));
}

TEST(Command, NamesAMissingProgramAndEndsASlowOne) {
  const auto missing = runCommand({"no-such-program-of-slurm"}, 30);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  const auto slow = runCommand({"sh", "-c", "sleep 60 & sleep 60"}, 0.3);
  ASSERT_FALSE(slow.ok());
  EXPECT_EQ(slow.error().code, ErrorCode::kTimeout);
}

}  // namespace
}  // namespace muster::slurm
