// SPDX-License-Identifier: Apache-2.0
// Environments as launchers make them, mixed, broken and contradictory ones, and what is made of each.
#include "runner/launcher/launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

using Environment = std::map<std::string, std::string>;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Environment kOpenMpi{{"OMPI_COMM_WORLD_SIZE", "4"},
                           {"OMPI_COMM_WORLD_RANK", "2"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"},
                           {"MASTER_ADDR", "n0"}};
const Environment kTorchrun{
    {"GROUP_RANK", "1"},         {"GROUP_WORLD_SIZE", "2"}, {"RANK", "8"},
    {"WORLD_SIZE", "16"},        {"LOCAL_RANK", "0"},       {"LOCAL_WORLD_SIZE", "8"},
    {"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "29500"},  {"TORCHELASTIC_RUN_ID", "none"}};
const Environment kSlurm{{"SLURM_JOB_ID", "1234"},
                         {"SLURM_STEP_ID", "0"},
                         {"SLURM_NODEID", "2"},
                         {"SLURM_STEP_NUM_NODES", "4"},
                         {"SLURM_LOCALID", "0"},
                         {"SLURM_PROCID", "2"},
                         {"SLURM_STEP_NODELIST", "gpu[01-04]"}};
const Environment kIndexedJob{
    {"KUBERNETES_SERVICE_HOST", "10.96.0.1"}, {"JOB_COMPLETION_INDEX", "3"}, {"MUSTER_NNODES", "4"}};
const Environment kStatefulSet{{"KUBERNETES_SERVICE_HOST", "10.96.0.1"}, {"MUSTER_NNODES", "4"}};
const Environment kPlain{{"RANK", "1"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "n0"}, {"MASTER_PORT", "29500"}};

Environment with(Environment environment, const Environment& changes) {
  for (const auto& [name, value] : changes) environment[name] = value;
  return environment;
}

struct Place {
  const char* name;
  Environment environment;
  const char* hostName;
  LauncherKind kind;
  int nodeRank, nodeCount, localRank;
  const char* store;  ///< without a port: one that follows from the token; empty: none
};

class DetectedLauncher : public ::testing::TestWithParam<Place> {};

TEST_P(DetectedLauncher, HasItsPlace) {
  const Place& place = GetParam();
  const auto launcher = detectLauncher({}, place.environment, place.hostName);
  ASSERT_TRUE(launcher.ok()) << launcher.error().text();
  EXPECT_STREQ(launcherName(launcher->kind), launcherName(place.kind));
  EXPECT_EQ(launcher->nodeRank, place.nodeRank);
  EXPECT_EQ(launcher->nodeCount, place.nodeCount);
  EXPECT_EQ(launcher->localRank, place.localRank);
  EXPECT_EQ(launcher->store.text(), place.store);
  EXPECT_FALSE(launcher->why.empty());
}

INSTANTIATE_TEST_SUITE_P(
    All, DetectedLauncher,
    ::testing::Values(
        Place{"Nothing", {}, "box", LauncherKind::kNone, 0, 1, 0, ""},
        Place{"EmptyVariablesAreNone",
              {{"RANK", ""}, {"SLURM_STEP_ID", ""}},
              "box",
              LauncherKind::kNone,
              0,
              1,
              0,
              ""},
        Place{"OpenMpi", kOpenMpi, "n2", LauncherKind::kOpenMpi, 2, 4, 0, "n0"},
        Place{"OpenMpiSlots",
              with(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                              {"OMPI_COMM_WORLD_RANK", "3"},
                              {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}}),
              "n1", LauncherKind::kOpenMpi, 1, 2, 1, "n0"},
        Place{"OpenMpiOnOneNode",
              {{"OMPI_COMM_WORLD_SIZE", "4"},
               {"OMPI_COMM_WORLD_RANK", "2"},
               {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
               {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}},
              "box",
              LauncherKind::kOpenMpi,
              0,
              1,
              2,
              ""},
        Place{
            "MpirunUnderSlurm",
            with(with(kSlurm, {{"SLURM_JOB_NODELIST", "gpu[01-04]"}}), {{"OMPI_COMM_WORLD_SIZE", "4"},
                                                                        {"OMPI_COMM_WORLD_RANK", "1"},
                                                                        {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                                                                        {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}}),
            "gpu02", LauncherKind::kOpenMpi, 1, 4, 0, "gpu01"},
        Place{"Torchrun", kTorchrun, "n1", LauncherKind::kTorchrun, 1, 2, 0, "10.0.0.1"},
        Place{"TorchrunFollower", with(kTorchrun, {{"RANK", "13"}, {"LOCAL_RANK", "5"}}), "n1",
              LauncherKind::kTorchrun, 1, 2, 5, "10.0.0.1"},
        Place{"TorchrunUnderSlurm", with(kSlurm, kTorchrun), "gpu02", LauncherKind::kTorchrun, 1, 2, 0,
              "10.0.0.1"},
        Place{"TorchrunInAPod", with(with(kIndexedJob, kTorchrun), {{"MUSTER_NNODES", "2"}}), "job-3",
              LauncherKind::kTorchrun, 1, 2, 0, "10.0.0.1"},
        Place{"SlurmStep", kSlurm, "gpu03", LauncherKind::kSlurm, 2, 4, 0, "gpu01"},
        Place{"SlurmFollower", with(kSlurm, {{"SLURM_LOCALID", "3"}}), "gpu03", LauncherKind::kSlurm, 2, 4, 3,
              "gpu01"},
        Place{"SlurmStepOfOneNode",
              with(kSlurm,
                   {{"SLURM_STEP_NUM_NODES", "1"}, {"SLURM_NODEID", "0"}, {"SLURM_STEP_NODELIST", "gpu07"}}),
              "gpu07", LauncherKind::kSlurm, 0, 1, 0, ""},
        Place{"SlurmBatchScript", with(kSlurm, {{"SLURM_STEP_ID", "4294967291"}}), "gpu01",
              LauncherKind::kNone, 0, 1, 0, ""},
        Place{"SlurmScriptWithoutStep",
              {{"SLURM_JOB_ID", "7"}, {"SLURM_NODEID", "0"}, {"SLURM_JOB_NUM_NODES", "4"}},
              "gpu01",
              LauncherKind::kNone,
              0,
              1,
              0,
              ""},
        Place{"IndexedJob", kIndexedJob, "accept-3.pods.space.svc.cluster.local", LauncherKind::kKubernetes,
              3, 4, 0, "accept-0.pods.space.svc.cluster.local"},
        Place{"IndexedJobOnTheHostsNetwork", with(kIndexedJob, {{"MUSTER_RENDEZVOUS", "10.0.0.1:5000"}}),
              "node-17", LauncherKind::kKubernetes, 3, 4, 0, "10.0.0.1:5000"},
        Place{"IndexedJobEachPodAlone", with(kIndexedJob, {{"MUSTER_NNODES", "1"}}), "accept-3",
              LauncherKind::kKubernetes, 0, 1, 0, ""},
        Place{"JobSet", with(kIndexedJob, {{"JOBSET_NAME", "accept"}, {"REPLICATED_JOB_NAME", "nodes"}}),
              "accept-nodes-0-3", LauncherKind::kKubernetes, 3, 4, 0, "accept-nodes-0-0.accept"},
        Place{"JobSetOfSeveralJobs",
              with(kIndexedJob, {{"JOBSET_NAME", "accept"},
                                 {"REPLICATED_JOB_NAME", "nodes"},
                                 {"JOB_COMPLETION_INDEX", "1"},
                                 {"MUSTER_NODE_RANK", "3"}}),
              "accept-nodes-1-1", LauncherKind::kKubernetes, 3, 4, 0, "accept-nodes-0-0.accept"},
        Place{"StatefulSet", kStatefulSet, "muster-2.muster.space.svc.cluster.local",
              LauncherKind::kKubernetes, 2, 4, 0, "muster-0.muster.space.svc.cluster.local"},
        Place{"APodThatIsNoStatefulSet",
              {{"KUBERNETES_SERVICE_HOST", "10.96.0.1"}},
              "web-7c9f-2",
              LauncherKind::kNone,
              0,
              1,
              0,
              ""},
        Place{"PyTorchJobWithACount",
              with(kStatefulSet, {{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "job-master-0"}}),
              "job-worker-0", LauncherKind::kPlain, 1, 4, 0, "job-master-0"},
        Place{"Plain", kPlain, "n1", LauncherKind::kPlain, 1, 3, 0, "n0:29500"},
        Place{"PlainWithLocalRanks",
              with(kPlain,
                   {{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"}}),
              "n1", LauncherKind::kPlain, 1, 2, 1, "n0:29500"},
        Place{"PlainAlone", {{"RANK", "0"}, {"WORLD_SIZE", "1"}}, "box", LauncherKind::kPlain, 0, 1, 0, ""},
        Place{"PlainWithoutAPort", with(kPlain, {{"MASTER_PORT", ""}}), "n1", LauncherKind::kPlain, 1, 3, 0,
              "n0"}),
    [](const auto& info) { return info.param.name; });

struct Mistake {
  const char* name;
  Environment environment;
  const char* hostName;
  const char* message;
};

class BrokenLauncher : public ::testing::TestWithParam<Mistake> {};

TEST_P(BrokenLauncher, IsAnErrorThatNamesTheVariable) {
  const Mistake& mistake = GetParam();
  const auto launcher = detectLauncher({}, mistake.environment, mistake.hostName);
  ASSERT_FALSE(launcher.ok()) << launcher->why;
  EXPECT_EQ(launcher.error().code, ErrorCode::kUsage);
  EXPECT_THAT(launcher.error().text(), HasSubstr(mistake.message));
}

INSTANTIATE_TEST_SUITE_P(
    All, BrokenLauncher,
    ::testing::Values(
        Mistake{
            "OpenMpiHalf", {{"OMPI_COMM_WORLD_RANK", "0"}}, "n", "Open MPI: OMPI_COMM_WORLD_SIZE is not set"},
        Mistake{"OpenMpiRankBeyond", with(kOpenMpi, {{"OMPI_COMM_WORLD_RANK", "4"}}), "n", "rank 4 of 4"},
        Mistake{"OpenMpiDealtOut",
                with(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "1"}}), "n",
                "--map-by ppr:1:node"},
        Mistake{"OpenMpiUneven", with(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "3"}}), "n",
                "are not a multiple of 3 per node"},
        Mistake{"OpenMpiNowhere", with(kOpenMpi, {{"MASTER_ADDR", ""}}), "n", "give --rendezvous host"},
        Mistake{"OpenMpiNoNumber", with(kOpenMpi, {{"OMPI_COMM_WORLD_SIZE", "four"}}), "n",
                "OMPI_COMM_WORLD_SIZE=four, expected a whole number"},
        Mistake{"TorchrunContradiction", with(kTorchrun, {{"GROUP_RANK", "0"}}), "n",
                "GROUP_RANK=0 of 2 contradicts RANK=8"},
        Mistake{"TorchrunGroups", with(kTorchrun, {{"GROUP_WORLD_SIZE", "3"}}), "n", "contradicts"},
        Mistake{"TorchrunLocal", with(kTorchrun, {{"LOCAL_RANK", "8"}}), "n", "local rank 8 of 8"},
        Mistake{"TorchrunNoMaster", with(kTorchrun, {{"MASTER_ADDR", ""}}), "n", "MASTER_ADDR is not set"},
        Mistake{"TorchrunBadPort", with(kTorchrun, {{"MASTER_PORT", "70000"}}), "n", "MASTER_PORT=70000"},
        Mistake{"SlurmNodeBeyond", with(kSlurm, {{"SLURM_NODEID", "4"}}), "n", "is out of its range"},
        Mistake{"SlurmListOfAnotherLength", with(kSlurm, {{"SLURM_STEP_NODELIST", "gpu[01-03]"}}), "n",
                "names 3 nodes, SLURM_STEP_NUM_NODES says 4"},
        Mistake{"SlurmHostileList", with(kSlurm, {{"SLURM_STEP_NODELIST", "gpu[1-999999999]"}}), "n",
                "SLURM_STEP_NODELIST: host list"},
        Mistake{"SlurmNoList", with(kSlurm, {{"SLURM_STEP_NODELIST", ""}}), "n",
                "SLURM_STEP_NODELIST is not set"},
        Mistake{"SlurmStepIsText", with(kSlurm, {{"SLURM_STEP_ID", "x"}}), "n", "SLURM_STEP_ID=x"},
        Mistake{"IndexWithoutCount", {{"JOB_COMPLETION_INDEX", "0"}}, "accept-0", "set MUSTER_NNODES"},
        Mistake{"IndexBeyondCount", with(kIndexedJob, {{"MUSTER_NNODES", "3"}}), "accept-3",
                "node rank 3 is not below 3 nodes"},
        Mistake{"IndexIsText", with(kIndexedJob, {{"JOB_COMPLETION_INDEX", "-1"}}), "accept-3",
                "JOB_COMPLETION_INDEX=-1"},
        Mistake{"HostNetworkWithoutRendezvous", kIndexedJob, "node-17", "give --rendezvous host"},
        Mistake{"JobSetOfSeveralJobs",
                with(kIndexedJob, {{"JOBSET_NAME", "a"}, {"REPLICATED_JOB_NAME", "b"}}), "a-b-1-3",
                "set MUSTER_NODE_RANK"},
        Mistake{"JobSetOfAnotherName",
                with(kIndexedJob, {{"JOBSET_NAME", "a"}, {"REPLICATED_JOB_NAME", "b"}}), "c-0-3",
                "check JOBSET_NAME"},
        Mistake{"StatefulSetBeyond", kStatefulSet, "muster-4", "node rank 4 is not below 4 nodes"},
        Mistake{"PlainHalf", {{"RANK", "0"}}, "n", "WORLD_SIZE is not set"},
        Mistake{"PlainOtherHalf", {{"WORLD_SIZE", "2"}}, "n", "RANK is not set"},
        Mistake{"PlainBeyond", with(kPlain, {{"RANK", "3"}}), "n", "rank 3 of 3"},
        Mistake{"PlainNowhere", with(kPlain, {{"MASTER_ADDR", ""}}), "n", "does not tell where node 0 is"},
        Mistake{"PlainLocalContradiction",
                with(kPlain, {{"WORLD_SIZE", "4"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "2"}}), "n",
                "RANK=1 contradicts LOCAL_RANK=0"},
        Mistake{"PlainHugeNumber", with(kPlain, {{"WORLD_SIZE", "99999999999999999999"}}), "n",
                "expected a whole number"},
        Mistake{"CountAlone", {{"MUSTER_NNODES", "2"}}, "box", "are needed together"},
        Mistake{"RankAlone", {{"MUSTER_NODE_RANK", "1"}}, "box", "are needed together"},
        Mistake{"RendezvousAlone", {{"MUSTER_RENDEZVOUS", "n0:1"}}, "box", "are needed together"},
        Mistake{"CountIsZero", {{"MUSTER_NNODES", "0"}}, "box", "MUSTER_NNODES=0"},
        Mistake{"AnotherCountThanSlurm", with(kSlurm, {{"MUSTER_NNODES", "3"}}), "n",
                "--nnodes 3 contradicts Slurm step 1234.0"},
        Mistake{"AnotherCountThanAStepOfOne",
                with(kSlurm, {{"SLURM_STEP_NUM_NODES", "1"},
                              {"SLURM_NODEID", "0"},
                              {"SLURM_STEP_NODELIST", "gpu07"},
                              {"MUSTER_NNODES", "3"}}),
                "gpu07", "--nnodes 3 contradicts"}),
    [](const auto& info) { return info.param.name; });

TEST(LauncherFlags, AllTogetherOverruleEveryLauncher) {
  const auto launcher = detectLauncher({4, 1, "n0:5000"}, with(kSlurm, with(kTorchrun, kOpenMpi)), "n1");
  ASSERT_TRUE(launcher.ok()) << launcher.error().text();
  EXPECT_EQ(launcher->kind, LauncherKind::kFlags);
  EXPECT_EQ(launcher->nodeRank, 1);
  EXPECT_EQ(launcher->nodeCount, 4);
  EXPECT_TRUE(launcher->leadsNode());
  EXPECT_EQ(launcher->store, (StoreAddress{"n0", 5000}));
}

TEST(LauncherFlags, StandBeforeTheirVariables) {
  const auto launcher = detectLauncher(
      {2, {}, ""}, {{"MUSTER_NNODES", "9"}, {"MUSTER_NODE_RANK", "1"}, {"MUSTER_RENDEZVOUS", "n0:1"}}, "n1");
  ASSERT_TRUE(launcher.ok()) << launcher.error().text();
  EXPECT_EQ(launcher->nodeCount, 2);
  EXPECT_EQ(launcher->nodeRank, 1);
}

TEST(LauncherFlags, ReplaceOnlyTheRendezvousOfALauncher) {
  const auto launcher = detectLauncher({{}, {}, "other:7"}, kSlurm, "gpu03");
  ASSERT_TRUE(launcher.ok()) << launcher.error().text();
  EXPECT_EQ(launcher->kind, LauncherKind::kSlurm);
  EXPECT_EQ(launcher->nodeRank, 2);
  EXPECT_EQ(launcher->store, (StoreAddress{"other", 7}));
}

TEST(LauncherFlags, AreCheckedThemselves) {
  EXPECT_FALSE(detectLauncher({4, 4, "n0:5000"}, {}, "n").ok());
  EXPECT_FALSE(detectLauncher({0, 0, "n0:5000"}, {}, "n").ok());
  EXPECT_FALSE(detectLauncher({4, -1, "n0:5000"}, {}, "n").ok());
  EXPECT_THAT(detectLauncher({4, 1, "n0:"}, {}, "n").error().text(),
              HasSubstr("--rendezvous: \"n0:\" is not a store address"));
  EXPECT_THAT(detectLauncher({{}, 1, ""}, kSlurm, "n").error().text(),
              HasSubstr("--node-rank 1 contradicts"));
}

TEST(LauncherFlags, OfOneNodeNeedNoRendezvous) {
  const auto launcher = detectLauncher({1, 0, ""}, kSlurm, "n");
  ASSERT_TRUE(launcher.ok()) << launcher.error().text();
  EXPECT_EQ(launcher->kind, LauncherKind::kFlags);
  EXPECT_EQ(launcher->store, StoreAddress{});
}

TEST(DetectLauncher, KnowsTheNodesOfASlurmStepByName) {
  const auto launcher = detectLauncher({}, kSlurm, "gpu03");
  EXPECT_THAT(launcher->nodes, ElementsAre("gpu01", "gpu02", "gpu03", "gpu04"));
}

TEST(DetectLauncher, GivesEveryNodeOfAStepTheSameStore) {
  StoreAddress first;
  std::string job;
  for (int node = 0; node < 4; ++node) {
    const auto launcher = detectLauncher({}, with(kSlurm, {{"SLURM_NODEID", std::to_string(node)}}), "any");
    ASSERT_TRUE(launcher.ok());
    if (node == 0) first = launcher->store;
    if (node == 0) job = launcher->job;
    EXPECT_EQ(launcher->store, first);
    EXPECT_EQ(launcher->job, job);
  }
  EXPECT_NE(detectLauncher({}, with(kSlurm, {{"SLURM_STEP_ID", "1"}}), "any")->job, job);
  EXPECT_NE(detectLauncher({}, with(kSlurm, {{"SLURM_JOB_ID", "1235"}}), "any")->job, job);
}

}  // namespace
}  // namespace muster
