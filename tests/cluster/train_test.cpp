// SPDX-License-Identifier: Apache-2.0
// Real training over hosts: accepted when all are well, and a host whose sums are silently wrong is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cluster/cluster_run.h"

namespace muster::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kTrainHosts = 3;
constexpr int kSick = 1;

constexpr const char* kTrainPlan = R"(schema = 1
name = "train"
sku = "auto"
backend = "host"

[[stage]]
name = "train"
plugin = "train"
test = "training"
scope = "cluster"
ranks = 1
timeout = "80s"
[stage.params]
width = 8
batch_size = 4
num_classes = 10
image_size = 32
bucket_bytes = "64 KiB"
warmup_iterations = 3
active_iterations = 30
solo_iterations = 1
loader_workers = 1

[[stage]]
name = "twice"
plugin = "train"
test = "determinism"
scope = "cluster"
ranks = 1
timeout = "80s"
[stage.params]
width = 8
batch_size = 4
num_classes = 10
image_size = 32
bucket_bytes = "64 KiB"
iterations = 3
)";

class ClusterTrain : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Hosts::whyNot(); !why.empty()) GTEST_SKIP() << why;
  }

  static std::string textOf(const ClusterRun& run, int host, const std::string& stage,
                            const std::string& metric) {
    for (const Measurement& m : run.stage(host, stage).measurements)
      if (m.metric == metric) return m.isText() ? m.text : std::to_string(static_cast<int>(m.samples.at(0)));
    return "";
  }
};

TEST_F(ClusterTrain, AcceptsHealthyHosts) {
  ClusterRun run(kTrainHosts, kTrainPlan, {});
  run.startAll();
  run.finish();
  for (int host = 0; host < kTrainHosts; ++host) {
    EXPECT_EQ(run.ended(host).exitCode, 0) << run.ended(host).out << run.ended(host).err;
    for (const char* stage : {"train", "twice"}) {
      EXPECT_EQ(run.stage(host, stage).group.value("world_size", 0), kTrainHosts);
      EXPECT_EQ(textOf(run, host, stage, "train.diverged_first_fault"), "");
    }
  }
  EXPECT_EQ(textOf(run, 0, "train", "train.diverged_ranks"), "0");
  EXPECT_THAT(textOf(run, 0, "train", "train.communication"), HasSubstr("gloo"));
}

TEST_F(ClusterTrain, NamesTheHostWhoseSumsAreWrongOnAllHosts) {
  ClusterRun run(kTrainHosts, kTrainPlan, {});
  ProcessOptions sick;
  sick.environment["LD_PRELOAD"] = buildDir() / "tests/fakes/gloo/corrupt-sum.so";
  for (int host = 0; host < kTrainHosts; ++host)
    run.start(host, host, {}, host == kSick ? sick : ProcessOptions{});
  run.finish();
  for (int host = 0; host < kTrainHosts; ++host)
    for (const char* stage : {"train", "twice"})
      EXPECT_EQ(textOf(run, host, stage, "train.diverged_first_fault"),
                "rank 1 (n1): other gradients or parameters than the others' after the same sums, from a "
                "rank that cannot be told")
          << "host " << host << "\n"
          << run.details(host, stage) << run.ended(host).out;
  // Node 0 tells for the group, the sick one for itself; a healthy one is not rejected for it.
  for (const int host : {0, kSick}) {
    EXPECT_EQ(run.ended(host).exitCode, 1) << run.ended(host).out << run.ended(host).err;
    EXPECT_EQ(textOf(run, host, "train", "train.diverged_ranks"), "1");
  }
  EXPECT_EQ(run.ended(2).exitCode, 0) << run.ended(2).out << run.ended(2).err;
}

/// What a line changes becomes part of the sums of all hosts: both trainings differ on each, from the first
/// such sum on.
TEST_F(ClusterTrain, LaysALineThatDamagesSumsToNoHost) {
  for (const char* line : {"sends 21 1 9", "receives 21 1 9"}) {
    SCOPED_TRACE(line);
    ClusterRun run(kTrainHosts, kTrainPlan, {});
    run.seeOwnInterfaces();
    ProcessOptions sick;
    sick.environment["LD_PRELOAD"] = buildDir() / "tests/fakes/gloo/stuck-line.so";
    sick.environment["MUSTER_FAKE_STUCK_LINE"] = line;
    for (int host = 0; host < kTrainHosts; ++host)
      run.start(host, host, {}, host == kSick ? sick : ProcessOptions{});
    run.finish();
    const ProcessResult fleet = run.fleet();
    EXPECT_EQ(fleet.exitCode, 1);
    for (const auto& [host, state] : run.states()) EXPECT_EQ(state, "affected") << host << "\n" << fleet.out;
    for (int host = 0; host < kTrainHosts; ++host)
      EXPECT_THAT(textOf(run, host, "twice", "train.first_fault"),
                  HasSubstr("from a rank that cannot be told"));
  }
}

}  // namespace
}  // namespace muster::testing
