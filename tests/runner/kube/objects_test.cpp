// SPDX-License-Identifier: Apache-2.0
#include "runner/kube/objects.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>

#include "tests/support/process.h"

namespace muster::kube {
namespace {

using ::testing::HasSubstr;

Json listOf(const std::string& item) {
  return *parseJson("{\"items\": [" + item + "]}");
}

TEST(Objects, ReadsANode) {
  const Nodes nodes = nodesFrom(listOf(R"({"metadata": {"name": "n1", "labels": {"a/b": "c"}},
    "spec": {"unschedulable": true, "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]},
    "status": {"allocatable": {"nvidia.com/gpu": "8", "memory": "64Gi"},
               "conditions": [{"type": "MemoryPressure", "status": "True"}, {"type": "Ready", "status": "True"}]}})"));
  const NodeInfo& node = nodes.at("n1");
  EXPECT_TRUE(node.ready);
  EXPECT_EQ(node.unavailable(), "cordoned");
  EXPECT_EQ(node.count("nvidia.com/gpu"), 8);
  EXPECT_EQ(node.count("rdma/hca"), 0);
  ASSERT_EQ(node.taints.size(), 1U);
  EXPECT_EQ(node.taints[0].key, "k");
}

TEST(Objects, ANodeIsReadyOnlyIfItSaysSo) {
  for (const char* conditions :
       {"[]", R"([{"type": "Ready", "status": "Unknown"}])", R"([{"type": "Ready"}])", "7"}) {
    const Nodes nodes = nodesFrom(
        listOf(std::string(R"({"metadata": {"name": "n1"}, "status": {"conditions": )") + conditions + "}}"));
    EXPECT_EQ(nodes.at("n1").unavailable(), "NotReady") << conditions;
  }
}

TEST(Objects, ANodeHasGpusAlsoWhereItOffersNone) {
  struct Case {
    const char* node;  ///< its parts beside its name
    bool gpus;
    const char* why;  ///< a pod that requests 8 cannot run there
  };
  constexpr const char* kNone = "offers 0 nvidia.com/gpu, a pod requests 8";
  const Case cases[] = {
      {R"("status": {"allocatable": {"nvidia.com/gpu": "8"}})", true, ""},
      {R"("status": {"allocatable": {"nvidia.com/gpu": "7"}, "capacity": {"nvidia.com/gpu": "8"}})", true,
       "offers 7 nvidia.com/gpu, a pod requests 8"},
      {R"("status": {"allocatable": {"nvidia.com/gpu": "0"}})", true, kNone},
      {R"("status": {"capacity": {"nvidia.com/gpu": "8"}})", true, kNone},
      {R"("status": {"capacity": {"nvidia.com/gpu": "0"}})", true, kNone},
      {R"("metadata": {"name": "n", "labels": {"nvidia.com/gpu.present": "true"}})", true, kNone},
      {R"("metadata": {"name": "n", "labels": {"nvidia.com/gpu.present": "false"}})", false, kNone},
      {R"("status": {"allocatable": {"amd.com/gpu": "8", "cpu": "64"}})", false, kNone}};
  for (const Case& each : cases) {
    Json node = *parseJson("{" + std::string(each.node) + "}");
    node["metadata"]["name"] = "n";
    node["status"]["conditions"] = {{{"type", "Ready"}, {"status", "True"}}};
    const Nodes nodes = nodesFrom({{"items", {node}}});
    EXPECT_EQ(nodes.at("n").has("nvidia.com/gpu"), each.gpus) << each.node;
    EXPECT_EQ(unavailable(nodes, "n", {"nvidia.com/gpu", 8}), each.why) << each.node;
    EXPECT_EQ(unavailable(nodes, "n", {}), "") << each.node;
  }
  NodeInfo labelled;
  labelled.labels["nvidia.com/gpu.present"] = "true";
  EXPECT_FALSE(labelled.has("amd.com/gpu")) << "the label is of NVIDIA's";
}

/// One that is cut to 32 bits would be 0, and the node accepted.
TEST(Objects, ReadsNoSuccessInAnExitCodeThatNoProcessHas) {
  for (const char* code : {"4294967296", "-4294967296", "256", "-1"})
    EXPECT_EQ(podsFrom(listOf(std::string(R"({"metadata": {"name": "p"}, "status": {"containerStatuses": [
        {"name": "muster", "state": {"terminated": {"exitCode": )") +
                              code + "}}}]}}"))
                  .at(0)
                  .exitCode,
              255)
        << code;
}

TEST(Objects, ReadsAPod) {
  const auto pods = podsFrom(listOf(R"({"metadata": {"name": "p", "labels": {"muster.dev/round": "2",
      "batch.kubernetes.io/job-name": "j"}}, "spec": {"nodeName": "n1"},
    "status": {"phase": "Failed", "reason": "Evicted", "message": "low on memory", "containerStatuses": [
      {"name": "other", "state": {"terminated": {"exitCode": 0}}},
      {"name": "muster", "state": {"terminated": {"exitCode": 137}}}]}})"));
  ASSERT_EQ(pods.size(), 1U);
  EXPECT_EQ(pods[0].exitCode, 137);
  EXPECT_EQ(pods[0].round, 2);
  EXPECT_EQ(pods[0].job, "j");
  EXPECT_EQ(pods[0].why, "Evicted: low on memory");
}

TEST(Objects, TakesWhatIsOfAnotherTypeAsMissing) {
  for (const char* text :
       {"null", "7", "[]", "\"x\"", "{}", R"({"metadata": 7})", R"({"metadata": {"name": 7}})",
        R"({"metadata": {"name": ["x"]}, "status": [1]})"}) {
    EXPECT_TRUE(podsFrom(listOf(text)).empty()) << text;
    EXPECT_TRUE(jobsFrom(listOf(text)).empty()) << text;
    EXPECT_TRUE(nodesFrom(listOf(text)).empty()) << text;
    EXPECT_TRUE(podsFrom(*parseJson(text)).empty()) << text;
  }
  const auto pods =
      podsFrom(listOf(R"({"metadata": {"name": "p"}, "spec": {"nodeName": 1}, "status": {"phase": "Succeeded",
    "containerStatuses": [{"name": "muster", "state": {"terminated": {"exitCode": "0"}}}]}})"));
  EXPECT_EQ(pods.at(0).exitCode, -1);
  EXPECT_EQ(pods.at(0).node, "");
}

/// It would be an empty cluster, in which a resumed run meets pods that still run.
TEST(Objects, TakesNoOtherAnswerForAnEmptyList) {
  const testing::TempDir folder;
  const std::string path = std::getenv("PATH");
  setenv("PATH", (folder.path().string() + ":" + path).c_str(), 1);
  for (const std::string answer :
       {"null", "[]", "{}", R"({"items": null})", R"({"items": "x"})",
        R"({"kind": "Status", "status": "Failure", "message": "try again"})", R"({"items": []})"}) {
    const auto program = folder.write("kubectl", "#!/bin/sh\ncat <<'X'\n" + answer + "\nX\n");
    ASSERT_EQ(chmod(program.c_str(), 0755), 0);
    const bool list = answer == R"({"items": []})";
    EXPECT_EQ(readNodes({}).ok(), list) << answer;
    EXPECT_EQ(readJobs({}, "r").ok(), list) << answer;
    const auto pods = readPods({}, "r");
    ASSERT_EQ(pods.ok(), list) << answer;
    if (list) continue;
    EXPECT_THAT(pods.error().text(), HasSubstr("kubectl get pods --selector=muster.dev/run=r: answered"));
    EXPECT_EQ(pods.error().text().find("try again") != answer.npos, answer.find("try again") != answer.npos);
  }
  setenv("PATH", path.c_str(), 1);
}

TEST(Objects, RemovesOnlyTaintsOfTheKeyAndOnlyIfTheyAreUnchanged) {
  const Json node = *parseJson(
      R"({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "b", "effect": "NoExecute"},
                                                       {"key": "a", "effect": "NoExecute"}]}})");
  const auto patches = taintRemovals(node, "a");
  ASSERT_EQ(patches.size(), 2U);
  EXPECT_EQ(
      dumpJson(patches[0]),
      R"([{"op":"test","path":"/spec/taints/2","value":{"key":"a","effect":"NoExecute"}},{"op":"remove","path":"/spec/taints/2"}])");
  EXPECT_TRUE(taintRemovals(node, "c").empty());
  EXPECT_TRUE(taintRemovals(*parseJson("{}"), "a").empty());
}

TEST(Objects, ReadsTimes) {
  EXPECT_EQ(timeOf("1970-01-02T00:00:01Z"), 86401);
  EXPECT_EQ(timeOf("yesterday"), 0);
  EXPECT_EQ(timeOf(""), 0);
}

}  // namespace
}  // namespace muster::kube
