// SPDX-License-Identifier: Apache-2.0
#include "runner/slurm/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::slurm {
namespace {

using ::testing::HasSubstr;

NodeInfo inState(const std::string& state) {
  return {"n1", state, "root", "", 0};
}

/// A row of `sinfo`: its last column has a fixed width.
std::string row(const std::string& fields, std::string reason) {
  reason.resize(kReasonWidth, ' ');
  return fields + reason + "\n";
}

TEST(NodeLine, KeepsBarsInsideTheReason) {
  const auto nodes = parseNodes(row("gpu7|drained*|gpu:h100:8(S:0-1)|alice|", "fan | broken | 2 of 3"));
  ASSERT_TRUE(nodes.ok());
  ASSERT_EQ(nodes->size(), 1u);
  const NodeInfo& node = nodes->at("gpu7");
  EXPECT_EQ(node.name, "gpu7");
  EXPECT_EQ(node.reason, "fan | broken | 2 of 3");
  EXPECT_EQ(node.user, "alice");
  EXPECT_EQ(node.gpus, 8);
}

TEST(NodeLine, RefusesWhatIsNone) {
  for (const char* fields :
       {"", "gpu7|idle", "a b|idle|(null)|root|", "|idle|(null)|root|", "\ngpu7|idle|(null)|root|"})
    EXPECT_FALSE(parseNodes(row(fields, "none")).ok()) << fields;
  EXPECT_FALSE(parseNodes("gpu7|idle|(null)|root|none\n").ok()) << "of another width";
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
    EXPECT_TRUE((JobInfo{"1", "1", "1", state, "", ""}.live())) << state;
  for (const char* state :
       {"COMPLETED", "FAILED", "NODE_FAIL", "CANCELLED", "TIMEOUT", "DEADLINE", "OUT_OF_MEMORY", ""})
    EXPECT_FALSE((JobInfo{"1", "1", "1", state, "", ""}.live())) << state;
}

TEST(JobInfo, IsReadFromTheAccounting) {
  const auto read = [](const std::string& line) { return parseAccountedJobs(line + "\n", ""); };
  const auto jobs = read("104|101_3|1000|FAILED|1:0|1795230000|1795230096|n[3-4]");
  ASSERT_TRUE(jobs.ok()) << jobs.error().text();
  const JobInfo& job = jobs->front();
  EXPECT_EQ(job.number, "104");
  EXPECT_EQ(job.job, "101");
  EXPECT_EQ(job.id, "101_3");
  EXPECT_EQ(job.user, 1000);
  EXPECT_EQ(job.state, "FAILED");
  EXPECT_EQ(job.exitCode, 1);
  EXPECT_EQ(job.start, 1795230000);
  EXPECT_EQ(job.end, 1795230096);
  EXPECT_EQ(job.nodes, "n[3-4]");
  EXPECT_EQ(read("90|90|0|CANCELLED by 0|0:15|Unknown|Unknown|n1")->front().state, "CANCELLED");
  EXPECT_EQ(read("90|90|0|FAILED|0:9|1|2|n1")->front().exitCode, 137);
  for (const char* line :
       {"104|101_3|1000|FAILED|1:0|1|2", "x|101_3|1000|FAILED|1:0|1|2|n3", "104|1|root|FAILED|1:0|1|2|n3",
        "104|1|0|FAILED||1|2|n3", "104|1|0|FAILED|1.5:0|1|2|n3", "104|1|0|FAILED|1:0|1|2|n3|more"})
    EXPECT_FALSE(read(line).ok()) << line;
}

}  // namespace
}  // namespace muster::slurm
