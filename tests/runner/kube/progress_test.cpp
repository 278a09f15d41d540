// SPDX-License-Identifier: Apache-2.0
#include "runner/kube/progress.h"

#include <gtest/gtest.h>

#include "runner/kube/collect.h"

namespace muster::kube {
namespace {

/// A run of these nodes, one job for each.
struct World {
  Submission run;
  std::map<std::string, NodeResult> results;
  Snapshot seen;

  explicit World(const std::vector<std::string>& nodes) {
    run.nodes = nodes;
    for (const std::string& node : nodes) {
      seen.nodes[node].name = node;
      seen.nodes[node].ready = true;
      JobInfo& job = seen.jobs.emplace_back();
      job.name = "job-" + node;
      job.node = node;
      job.round = 1;
    }
  }
  PodInfo& pod(const std::string& job, const std::string& phase, const std::string& node = "") {
    PodInfo& pod = seen.pods.emplace_back();
    pod.name = "pod-" + job;
    pod.node = node;
    pod.job = "job-" + job;
    pod.phase = phase;
    pod.round = 1;
    return pod;
  }
  NodeJob of(const std::string& node) {
    for (const NodeJob& one : progressOf(run, results, seen))
      if (one.node == node) return one;
    return {};
  }
};

TEST(KubeProgress, ListsEachNodeOnceInTheRunsOrder) {
  World world({"b", "a", "c"});
  world.pod("a", "Running", "a");
  world.pod("a", "Running", "a");
  const auto all = progressOf(world.run, world.results, world.seen);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].node, "b");
  EXPECT_EQ(all[1].node, "a");
}

TEST(KubeProgress, APodThatWaitsBelongsToTheNodeOfItsJob) {
  World world({"a", "b"});
  world.pod("b", "Pending").why = "Unschedulable: taints";
  EXPECT_EQ(world.of("b").state, NodeState::kWaiting);
  EXPECT_NE(world.of("b").detail.find("Unschedulable"), std::string::npos);
  EXPECT_TRUE(anyLive(world.seen));
}

TEST(KubeProgress, AnAcceptedNodeNeedsARecord) {
  World world({"a"});
  world.seen.jobs[0].ended = true;
  for (const int code : {-1, 0, 1, 2, 3, 137}) {
    world.results["a"] = {"pod", 1, code, "its log holds no record"};
    EXPECT_EQ(world.of("a").state, NodeState::kLost) << code;
  }
  world.results["a"] = {"pod", 1, 0, ""};
  EXPECT_EQ(world.of("a").state, NodeState::kAccepted);
}

TEST(KubeProgress, AJobWhosePodIsGoneLosesItsNode) {
  World world({"a"});
  world.seen.jobs[0].ended = true;
  world.seen.jobs[0].failure = "DeadlineExceeded: too long";
  EXPECT_EQ(world.of("a").state, NodeState::kLost);
  EXPECT_NE(world.of("a").detail.find("DeadlineExceeded"), std::string::npos);
}

TEST(KubeProgress, ANodeWithoutAJobIsMissingAndTheReasonIsNamed) {
  World world({"a", "b", "c", "d"});
  world.seen.jobs.clear();
  world.run.gpus = {"nvidia.com/gpu", 8};
  world.seen.nodes["a"].allocatable["nvidia.com/gpu"] = 8;
  world.seen.nodes["b"].cordoned = true;
  world.seen.nodes.erase("c");
  EXPECT_EQ(world.of("a").detail, "no pod of this run reached it");
  EXPECT_EQ(world.of("b").detail, "cordoned");
  EXPECT_EQ(world.of("c").detail, "Kubernetes has no such node");
  EXPECT_EQ(world.of("d").detail, "offers 0 nvidia.com/gpu, a pod requests 8");
  for (const char* node : {"a", "b", "c", "d"}) EXPECT_EQ(world.of(node).state, NodeState::kMissing);
  EXPECT_EQ(expectText(world.run, progressOf(world.run, world.results, world.seen), world.seen.nodes),
            "a\nb down cordoned\nc down Kubernetes has no such node\n"
            "d down offers 0 nvidia.com/gpu, a pod requests 8\n");
}

TEST(KubeProgress, TheFleetIsToldOfEveryNodeAndOnlyOfBrokenOnesThatTheyAreDown) {
  World world({"accepted", "waiting", "lost", "gone", "cordoned", "broken"});
  world.results["accepted"] = {"pod", 1, 0, ""};
  world.seen.nodes["accepted"].ready = false;  // it went down after its verdict
  world.pod("waiting", "Pending").why = "Bad # comment\nline";
  world.results["lost"] = {"pod", 1, 0, "the pod's log ends within its record"};
  world.seen.nodes.erase("gone");
  world.seen.nodes["cordoned"].cordoned = true;
  world.results["broken"] = {"pod", 1, -1, "its container did not run to its end"};
  world.seen.nodes["broken"].ready = false;
  EXPECT_EQ(expectText(world.run, progressOf(world.run, world.results, world.seen), world.seen.nodes),
            "accepted\nwaiting\nlost\ngone down Kubernetes has no such node\ncordoned down cordoned\n"
            "broken down NotReady\n");
}

TEST(KubeProgress, PodsThatOnlyHaveTheRunsLabelAreLeftOut) {
  const auto podOf = [](const char* name, const char* node, int round) {
    PodInfo pod;
    pod.name = name;
    pod.node = node;
    pod.round = round;
    return pod;
  };
  Submission run;
  run.nodes = {"a", "b"};
  Snapshot seen;
  seen.pods = {podOf("own", "a", 2), podOf("elsewhere", "c", 2), podOf("unplaced", "", 1),
               podOf("ahead", "b", 3)};
  leaveOutStrangers(run, 2, seen);
  ASSERT_EQ(seen.pods.size(), 2u);
  EXPECT_EQ(seen.pods[0].name, "own");
  EXPECT_EQ(seen.pods[1].name, "unplaced");
}

}  // namespace
}  // namespace muster::kube
