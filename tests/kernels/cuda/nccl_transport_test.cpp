// SPDX-License-Identifier: Apache-2.0
// From NCCL's log and counters to transports and proven settings.
#include "kernels/cuda/nccl/transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cuda/nccl/settings.h"

namespace muster::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

NcclLog withGraph(const std::string& inside) {
  NcclLog log;
  log.graphs.push_back({4, 12, inside, "PIX"});
  return log;
}

TEST(NcclTransport, TellsNvlinkFromPcieByTheGraph) {
  EXPECT_EQ(transportOf("P2P/CUMEM", withGraph("NVL")), "nvlink");
  EXPECT_EQ(transportOf("P2P/CUMEM/read", withGraph("C2C")), "nvlink");
  EXPECT_EQ(transportOf("P2P/IPC", withGraph("PHB")), "pcie-p2p");
  EXPECT_EQ(transportOf("P2P/IPC", withGraph("SYS")), "pcie-p2p");
}

TEST(NcclTransport, NamesNoLinkWhereTheLogDoesNotTell) {
  EXPECT_EQ(transportOf("P2P/CUMEM", {}), "p2p");
  EXPECT_EQ(transportOf("NET/IB/0", {}), "ib-or-roce");
}

TEST(NcclTransport, CountsOneGraphOverPcieAsPcie) {
  NcclLog log = withGraph("NVL");
  log.graphs.push_back({1, 4, "PXB", "PXB"});
  EXPECT_EQ(transportOf("P2P/CUMEM", log), "pcie-p2p");
  log.graphs.back().channels = 0;  // a graph that NCCL found no channel for is not used
  EXPECT_EQ(transportOf("P2P/CUMEM", log), "nvlink");
}

TEST(NcclTransport, KnowsNvlinkBetweenNodes) {
  NcclLog log = withGraph("NVL");
  log.mnnvl = true;
  EXPECT_EQ(transportOf("P2P/CUMEM", log), "mnnvl");
}

TEST(NcclTransport, TellsInfinibandFromRoceByTheHca) {
  NcclLog log;
  log.hcas[0] = {"mlx5_0", 1, "IB"};
  log.hcas[3] = {"mlx5_3", 1, "RoCE"};
  EXPECT_EQ(transportOf("NET/IB/0/GDRDMA", log), "ib+gdr");
  EXPECT_EQ(transportOf("NET/IB/3(7)/GDRDMA(PCI)/Shared", log), "roce+gdr");
  EXPECT_EQ(transportOf("NET/IB/0", log), "ib");
}

TEST(NcclTransport, NamesSocketsSharedMemoryAndPlugins) {
  EXPECT_EQ(transportOf("NET/Socket/0", {}), "socket");
  EXPECT_EQ(transportOf("SHM/direct/direct", {}), "shm");
  EXPECT_EQ(transportOf("NET/gIB/0/GDRDMA", {}), "gib+gdr");
  EXPECT_EQ(transportOf("COLLNET/SHARP/0/GDRDMA", {}), "collnet-sharp+gdr");
  EXPECT_EQ(transportOf("NET/IB/", {}), "ib-or-roce");
  EXPECT_EQ(transportOf("", {}), "");
}

TEST(NcclTransport, CountsOnlyConnectionsMadeSinceTheGroupWasFormed) {
  NcclLog before = withGraph("NVL");
  before.connections["P2P/CUMEM"] = 24;
  before.connections["SHM/direct/direct"] = 2;
  NcclLog now = before;
  now.connections["P2P/CUMEM"] = 48;
  const std::vector<TransportUse> uses = transportsSince(before, now, {{"nvlink", 5e9}, {"eth0", 100}}, 7e9);
  ASSERT_THAT(uses, SizeIs(1));
  EXPECT_EQ(uses[0].transport, "nvlink");
  EXPECT_EQ(uses[0].bytes, 5e9);
  EXPECT_THAT(uses[0].evidence, HasSubstr("24 x P2P/CUMEM"));
  EXPECT_THAT(uses[0].evidence, HasSubstr("nvlink sent 4.657 GiB"));
}

TEST(NcclTransport, SaysThatNoCounterCouldBeRead) {
  NcclLog now = withGraph("NVL");
  now.connections["P2P/CUMEM"] = 1;
  const std::vector<TransportUse> uses = transportsSince({}, now, {{"eth0", 100}}, 7e9);
  ASSERT_THAT(uses, SizeIs(1));
  EXPECT_EQ(uses[0].bytes, 7e9);
  EXPECT_THAT(uses[0].evidence, HasSubstr("no counter to read"));
}

TEST(NcclTransport, GivesEachTransportItsOwnCounters) {
  NcclLog now = withGraph("NVL");
  now.hcas[0] = {"mlx5_0", 1, "IB"};
  now.connections["P2P/CUMEM"] = 1;
  now.connections["NET/IB/0/GDRDMA"] = 2;
  now.connections["NET/Socket/0"] = 1;
  const std::vector<TransportUse> uses =
      transportsSince({}, now, {{"nvlink", 3e9}, {"mlx5_0:1", 2e9}, {"mlx5_1:1", 1e9}, {"eth0", 4e3}}, 0);
  ASSERT_THAT(uses, SizeIs(3));
  EXPECT_EQ(uses[0].transport + uses[1].transport, "ib+gdrnvlink");
  EXPECT_EQ(uses[0].bytes, 3e9);
  EXPECT_EQ(uses[2].transport, "socket");
  EXPECT_EQ(uses[2].bytes, 4e3);
}

TEST(NcclTransport, HasNoTransportWithoutAConnection) {
  EXPECT_THAT(transportsSince({}, withGraph("NVL"), {{"nvlink", 1e9}}, 1e9), IsEmpty());
}

TEST(NcclSettings, RefusesWhatIsNotASettingOfNccl) {
  EXPECT_FALSE(checkSettings({{"LD_PRELOAD", "/tmp/x.so"}}).ok());
  EXPECT_FALSE(checkSettings({{"PATH", "/tmp"}}).ok());
  EXPECT_FALSE(checkSettings({{"NCCL_A B", "1"}}).ok());
  EXPECT_FALSE(checkSettings({{"NCCL_NET", "a\nb"}}).ok());
  EXPECT_TRUE(checkSettings({{"NCCL_IB_TIMEOUT", "23"}, {"FI_EFA_USE_DEVICE_RDMA", "1"}}).ok());
}

/// A plan is data: NCCL and the libraries below it load libraries, write files and run commands by these.
TEST(NcclSettings, RefusesWhatNamesAFileOrACommand) {
  for (const auto& [name, value] : Settings{{"NCCL_ENV_PLUGIN", "/tmp/x.so"},
                                            {"NCCL_NET_PLUGIN", "../x"},
                                            {"NCCL_TOPO_DUMP_FILE", "x"},
                                            {"NCCL_TOPO_FILE", "x"},
                                            {"NCCL_CONF_FILE", "x"},
                                            {"NCCL_TUNER_CONFIG_PATH", "x"},
                                            {"NCCL_INSPECTOR_DUMP_DIR", "x"},
                                            {"OFI_NCCL_TOPO_FILE", "x"},
                                            {"FI_PROVIDER_PATH", "x"},
                                            {"IBV_DRIVERS", "x"},
                                            {"RDMAV_DRIVERS", "x"},
                                            {"UCX_GDB_COMMAND", "reboot"},
                                            {"UCX_LOG_FILE", "x"},
                                            {"UCX_MODULE_DIR", "x"},
                                            {"SHARP_COLL_LOG_FILE", "x"}})
    EXPECT_FALSE(checkSettings({{name, value}}).ok()) << name;
  EXPECT_THAT(checkSettings({{"NCCL_TOPO_FILE", "x"}}).error().message, HasSubstr("/etc/nccl.conf"));
  for (const char* name : {"NCCL_NET_GDR_LEVEL", "NCCL_IB_PCI_RELAXED_ORDERING", "NCCL_NET_PLUGIN", "UCX_TLS",
                           "NCCL_NET_DISABLE_INTRA", "FI_PROVIDER", "MLX5_SINGLE_THREADED"})
    EXPECT_TRUE(checkSettings({{name, "none"}}).ok()) << name;
}

TEST(NcclSettings, RefusesByNameWhatMusterSetsItself) {
  for (const char* name : {"NCCL_DEBUG_FILE", "NCCL_COMM_BLOCKING", "NCCL_COMM_SPLIT_SHARE_RESOURCES"}) {
    const Status refused = checkSettings({{name, "1"}});
    ASSERT_FALSE(refused.ok()) << name;
    EXPECT_NE(refused.error().message.find(std::string(name) + " is Muster's own"), std::string::npos);
  }
}

TEST(NcclSettings, AreProvenByTheLog) {
  NcclLog log;
  log.environment = {{"NCCL_IB_TIMEOUT", "23"}, {"NCCL_ALGO", "Tree"}};
  const SettingsProof proof =
      proveSettings({{"NCCL_IB_TIMEOUT", "23"}, {"NCCL_ALGO", "Ring"}, {"NCCL_TYPO", "1"}}, log);
  EXPECT_THAT(proof.taken, ElementsAre("NCCL_IB_TIMEOUT=23"));
  EXPECT_THAT(proof.changed, ElementsAre("NCCL_ALGO is Tree, expected Ring"));
  EXPECT_THAT(proof.unsaid, ElementsAre("NCCL_TYPO"));
}

}  // namespace
}  // namespace muster::cuda
