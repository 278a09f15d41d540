// SPDX-License-Identifier: Apache-2.0
// fabric = "auto" on made-up machines: which fabric their NICs belong to, and what the operator keeps.
#include "plugins/collective/fabric_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "kernels/host/inventory/host_inventory.h"
#include "plugins/collective/fabrics.h"
#include "tests/plugins/recording_host.h"
#include "tests/plugins/scenario.h"
#include "tests/support/process.h"

namespace muster::testing {
namespace {

using collective::chooseFabric;
using collective::FabricChoice;
using collective::Settings;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

/// A machine's sysfs.
class Machine {
 public:
  void firmware(const std::string& file, const std::string& text) {
    root_.write("sys/class/dmi/id/" + file, text + "\n");
  }
  /// `count` devices with one port each.
  void rdma(int count, const std::string& prefix, const std::string& driver, const std::string& layer,
            const std::string& state = "4: ACTIVE") {
    for (int i = 0; i < count; ++i) {
      const std::string folder = "sys/class/infiniband/" + prefix + std::to_string(i);
      root_.write(folder + "/ports/1/state", state + "\n");
      root_.write(folder + "/ports/1/link_layer", layer + "\n");
      root_.write(folder + "/ports/1/rate", "400 Gb/sec (4X NDR)\n");
      linkDriver(folder, driver);
    }
  }
  void interfaces(int count, const std::string& driver, const std::string& state = "up") {
    for (int i = 0; i < count; ++i) {
      const std::string folder = "sys/class/net/eth" + std::to_string(interfaces_++);
      root_.write(folder + "/operstate", state + "\n");
      linkDriver(folder, driver);
    }
  }
  [[nodiscard]] FabricChoice choice() const {
    HostSources sources = machineSources();
    sources.root = Root(root_.path());
    return chooseFabric(*HostInventory(std::move(sources)).node());
  }

 private:
  void linkDriver(const std::string& folder, const std::string& driver) {
    std::filesystem::create_directories(root_.path() / folder / "device");
    std::filesystem::create_symlink("../../../../bus/pci/drivers/" + driver,
                                    root_.path() / folder / "device/driver");
  }
  TempDir root_;
  int interfaces_ = 0;
};

TEST(FabricChoice, OfEfaIsTheOneOfAws) {
  Machine machine;
  machine.firmware("sys_vendor", "Amazon EC2");
  machine.rdma(32, "rdmap", "efa", "Unspecified");
  const FabricChoice choice = machine.choice();
  EXPECT_EQ(choice.name, "aws-efa");
  EXPECT_EQ(choice.evidence, "active RDMA ports: 32 EFA (efa), the first rdmap0/1 at 400 Gb/sec (4X NDR)");
  EXPECT_EQ(choice.settings, *collective::fabricSettings("aws-efa"));
}

TEST(FabricChoice, OfInfinibandDependsOnTheCloud) {
  Machine own, azure, hyperV;
  azure.firmware("chassis_asset_tag", "7783-7084-3265-9085-8269-3286-77");
  hyperV.firmware("sys_vendor", "Microsoft Corporation");
  for (Machine* machine : {&own, &azure, &hyperV}) machine->rdma(8, "mlx5_", "mlx5_core", "InfiniBand");
  azure.rdma(1, "mlx5_an", "mlx5_core", "Ethernet");
  EXPECT_EQ(own.choice().name, "ib");
  EXPECT_THAT(own.choice().evidence, HasSubstr("8 InfiniBand (mlx5_core), the first mlx5_0/1 at 400 Gb/sec"));
  EXPECT_EQ(own.choice().settings.at("NCCL_IB_TIMEOUT"), "23");
  EXPECT_EQ(azure.choice().name, "azure-ib");
  EXPECT_THAT(azure.choice().evidence, HasSubstr("cloud azure"));
  EXPECT_EQ(hyperV.choice().name, "ib") << "Hyper-V is not Azure";
}

TEST(FabricChoice, OfRdmaOverEthernetDependsOnTheCloudToo) {
  Machine own, google, oracle, azure, other;
  google.firmware("product_name", "Google Compute Engine");
  oracle.firmware("chassis_asset_tag", "OracleCloud.com");
  azure.firmware("chassis_asset_tag", "7783-7084-3265-9085-8269-3286-77");
  for (Machine* machine : {&own, &google, &oracle, &azure})
    machine->rdma(8, "mlx5_", "mlx5_core", "Ethernet");
  other.rdma(8, "erdma_", "erdma", "Ethernet");
  google.interfaces(2, "gve");
  EXPECT_EQ(own.choice().name, "roce");
  EXPECT_EQ(google.choice().name, "gcp-gib");
  EXPECT_EQ(google.choice().settings.at("NCCL_NET"), "gIB");
  EXPECT_EQ(oracle.choice().name, "oci-roce");
  EXPECT_EQ(azure.choice().name, "none") << "accelerated networking carries no RDMA between virtual machines";
  EXPECT_EQ(other.choice().name, "none");
  EXPECT_THAT(other.choice().evidence, HasSubstr("8 Ethernet (erdma)"));
}

TEST(FabricChoice, FollowsTheMoreNumerousPorts) {
  Machine infiniband, ethernet;
  infiniband.rdma(8, "mlx5_", "mlx5_core", "InfiniBand");
  infiniband.rdma(2, "storage", "mlx5_core", "Ethernet");
  ethernet.rdma(8, "mlx5_", "mlx5_core", "Ethernet");
  ethernet.rdma(2, "storage", "mlx5_core", "InfiniBand");
  EXPECT_EQ(infiniband.choice().name, "ib");
  EXPECT_EQ(ethernet.choice().name, "roce");
}

TEST(FabricChoice, KnowsA3MegaByItsNumberOfGvnics) {
  Machine mega, high, down;
  mega.interfaces(9, "gve");
  high.interfaces(5, "gve");
  down.interfaces(9, "gve", "down");
  EXPECT_EQ(mega.choice().name, "gcp-fastrak");
  EXPECT_THAT(mega.choice().evidence, HasSubstr("9 gVNIC interfaces"));
  EXPECT_EQ(high.choice().name, "none");
  EXPECT_EQ(down.choice().name, "none");
}

TEST(FabricChoice, IsNoneWhereNothingMatches) {
  Machine bare, down;
  bare.interfaces(2, "ixgbe");
  down.rdma(8, "mlx5_", "mlx5_core", "InfiniBand", "1: DOWN");
  for (const Machine* machine : {&bare, &down}) {
    EXPECT_EQ(machine->choice().name, "none");
    EXPECT_TRUE(machine->choice().settings.empty());
  }
  EXPECT_EQ(bare.choice().evidence, "no RDMA device; no known cloud");
  EXPECT_EQ(down.choice().evidence, "8 RDMA ports, none active");
  EXPECT_EQ(chooseFabric({{"nics", 5}, {"host", "x"}}).name, "none") << "an inventory is not trusted";
}

TEST(FabricChoice, LeavesWhatTheOperatorHasSet) {
  const TempDir folder;
  folder.write("home/.nccl.conf", "# NCCL_IB_QPS_PER_CONNECTION=1\nNCCL_IB_RETRY_CNT=5\n");
  folder.write("site.conf", "NCCL_IB_DISABLE=1\n");
  const auto system = folder.write("etc/nccl.conf", "NCCL_IB_TIMEOUT=20\n#NCCL_IB_RETRY_CNT=3\n");
  const std::string home = "HOME=" + (folder.path() / "home").string();
  Machine machine;
  machine.rdma(8, "mlx5_", "mlx5_core", "InfiniBand");
  FabricChoice choice = machine.choice();
  collective::yieldTo(collective::operatorSettings({home, "PATH=/bin", "NCCL_IB_DISABLE="}, system), choice);
  EXPECT_TRUE(choice.settings.empty()) << choice.settings.begin()->first;
  EXPECT_THAT(choice.evidence,
              HasSubstr("; not overridden: NCCL_IB_DISABLE (environment), NCCL_IB_RETRY_CNT ("));
  EXPECT_THAT(choice.evidence, HasSubstr("NCCL_IB_TIMEOUT (" + system.string() + ")"));

  FabricChoice bySite = machine.choice();
  const std::string site = "NCCL_CONF_FILE=" + (folder.path() / "site.conf").string();
  collective::yieldTo(collective::operatorSettings({home, site}, folder.path() / "none"), bySite);
  EXPECT_THAT(bySite.settings, ElementsAre(Pair("NCCL_IB_RETRY_CNT", "7"), Pair("NCCL_IB_TIMEOUT", "23")))
      << "NCCL_CONF_FILE replaces the home's file";
}

TEST(FabricChoice, OfAnotherNodeHasToBeTheSame) {
  const collective::FabricVote own{"n0", "roce", "active RDMA ports: 8 Ethernet"};
  const collective::FabricVote other{"n1", "ib", "8 InfiniBand \"x\""};
  EXPECT_TRUE(collective::checkSame({own, own}).ok());
  const Status odd = collective::checkSame({own, own, other, other});
  ASSERT_FALSE(odd.ok());
  EXPECT_THAT(
      odd.error().message,
      HasSubstr("of 2 of 4 ranks the NICs call for the same fabric: those of rank 0 (on \"n0\") say roce "
                "(\"active RDMA ports: 8 Ethernet\"); those of rank 2 (on \"n1\") say ib (\"8 "
                "InfiniBand 'x'\"); expected"));
  EXPECT_THAT(collective::checkSame({own, other, other}).error().message,
              AllOf(HasSubstr("fabric: those of rank 1 (on \"n1\") say ib"),
                    HasSubstr("; those of rank 0 (on \"n0\") say roce")))
      << "most say what is expected, not rank 0";
  std::vector<collective::FabricVote> many(60, own);
  for (size_t i = 0; i < 29; ++i) many[i] = {"m" + std::to_string(i), "ib", ""};
  EXPECT_THAT(collective::checkSame(many).error().message, HasSubstr("; those of 21 more nodes; expected"));
}

TEST(FabricChoice, IsToldToTheOtherRanks) {
  const collective::FabricVote vote{"n0", "roce", "8 Ethernet \"x\", \xff"};
  const collective::FabricVote read = collective::voteFrom(collective::voteText(vote));
  EXPECT_EQ(read.node, vote.node);
  EXPECT_EQ(read.fabric, vote.fabric);
  for (const char* lie : {"", "{}", "[1, 2]", "[[[[", R"x(["n1", "ib did not arrive: node 1 (n1)", ""])x"})
    EXPECT_EQ(collective::voteFrom(lie).fabric, "") << lie;
}

std::vector<RdmaPort> portsOf(const std::vector<double>& gigabits, const std::string& layer = "InfiniBand") {
  std::vector<RdmaPort> ports;
  for (const double rate : gigabits) {
    RdmaPort port;
    port.state = rate > 0 ? "ACTIVE" : "DOWN";
    port.layer = layer;
    port.bytesPerSecond = rate * 1e9 / 8;
    ports.push_back(port);
  }
  return ports;
}

TEST(ForcedFabric, NeedsOneActivePortForEachRank) {
  EXPECT_DOUBLE_EQ(*collective::forcedLineRate(portsOf({400, 400, 100}), 2), 50e9)
      << "the third is for storage";
  EXPECT_DOUBLE_EQ(*collective::forcedLineRate(portsOf({400, 200}, "Ethernet"), 2), 25e9);
  const auto few = collective::forcedLineRate(portsOf({400, 0}), 2);
  ASSERT_FALSE(few.ok());
  EXPECT_EQ(few.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(few.error().message, HasSubstr("for each of 2 ranks of a node; found 1"));
  EXPECT_THAT(collective::forcedLineRate({}, 2).error().message, HasSubstr("found no RDMA device"));
  EXPECT_FALSE(collective::forcedLineRate(portsOf({400, 400}, "Unspecified"), 2).ok());
}

/// The plugin on simulated nodes.
class AutoFabric : public ::testing::Test {
 protected:
  /// Its text metrics.
  std::map<std::string, std::string> run(const std::string& more, const Json& params, int nodes = 2) {
    RecordingHost host;
    const auto path =
        folder_.write("scenario.toml",
                      scenarioText("[network]\nintra_bandwidth = \"400 GB/s\"\nrail_bandwidth = \"50 GB/s\"\n"
                                   "confirms_settings = true\n" +
                                   more));
    Json context = contextFor("sim", "gpu0", path.string());
    context.update({{"scope", "cluster"},
                    {"rank", 0},
                    {"world_size", 2 * nodes},
                    {"node", {{"rank", 0}, {"count", nodes}}}});
    Json all = {{"from", "1 MiB"}, {"to", "1 MiB"}, {"fabric", "auto"}};
    all.update(params);
    EXPECT_EQ(plugin_.run(host, "sweep", all, context).ran, MUSTER_OK) << host.error;
    plugin_.expectDeclared(host, "sweep");
    std::map<std::string, std::string> texts;
    for (const Told& told : host.measurements) texts[told.metric] = told.text;
    return texts;
  }
  static std::string rdma(const std::string& more) {
    return "[rdma]\ncount = 2\nline_rate = \"50 GB/s\"\nbandwidth = \"48 GB/s\"\n" + more;
  }
  TempDir folder_;
  PluginLibrary plugin_{"collective"};
};

TEST_F(AutoFabric, TakesTheSettingsOfTheDetectedNicsAndSaysWhy) {
  auto ib = run(rdma(""), Json::object());
  EXPECT_EQ(ib["fabric"], "ib");
  EXPECT_EQ(ib["fabric_evidence"],
            "active RDMA ports: 2 InfiniBand (mlx5_core), the first mlx5_0/1 at 400 Gb/sec; no known cloud");
  EXPECT_EQ(ib["settings_taken"], "NCCL_IB_DISABLE=0 NCCL_IB_RETRY_CNT=7 NCCL_IB_TIMEOUT=23");
  auto efa =
      run(rdma("driver = \"efa\"\nlink_layer = \"Unspecified\"\nprefix = \"rdmap\"\n"), Json::object());
  EXPECT_EQ(efa["fabric"], "aws-efa");
  auto gib = run("[node.host]\ncloud = \"gcp\"\n" + rdma("link_layer = \"Ethernet\"\n"), Json::object());
  EXPECT_EQ(gib["fabric"], "gcp-gib");
  EXPECT_THAT(gib["settings_taken"], HasSubstr("NCCL_NET=gIB"));
}

TEST_F(AutoFabric, LeavesThePlansSettings) {
  auto host = run(rdma(""), {{"settings", "NCCL_IB_TIMEOUT=20"}});
  EXPECT_THAT(host["settings_taken"], HasSubstr("NCCL_IB_TIMEOUT=20"));
}

TEST_F(AutoFabric, IsNoneWithoutNicsAndOnOneNode) {
  auto bare = run("", Json::object());
  EXPECT_EQ(bare["fabric"], "none");
  EXPECT_EQ(bare["fabric_evidence"], "no RDMA device; no known cloud");
  EXPECT_EQ(bare.count("settings_taken"), 0u);
  auto one = run(rdma(""), Json::object(), 1);
  EXPECT_EQ(one["fabric"], "none");
  EXPECT_EQ(one["fabric_evidence"], "the group is on one node: no NIC carries its data");
}

TEST_F(AutoFabric, LeavesPlansThatNameTheirFabricAlone) {
  auto host = run(rdma(""), {{"fabric", "roce"}});
  EXPECT_EQ(host.count("fabric"), 0u);
  EXPECT_THAT(host["settings_taken"], Not(HasSubstr("NCCL_IB_TIMEOUT")));
}

TEST_F(AutoFabric, TakesNothingOfThisMachineForASimulatedOne) {
  setenv("NCCL_IB_TIMEOUT", "20", 1);
  auto host = run(rdma(""), Json::object());
  unsetenv("NCCL_IB_TIMEOUT");
  EXPECT_THAT(host["settings_taken"], HasSubstr("NCCL_IB_TIMEOUT=23"));
}

TEST_F(AutoFabric, OnlyWhatIsForcedLeavesTheNode) {
  RecordingHost host;
  const auto path =
      folder_.write("forced.toml", scenarioText("[network]\nintra_bandwidth = \"400 GB/s\"\n"
                                                "rail_bandwidth = \"40 GB/s\"\nnoise = \"0%\"\n" +
                                                rdma("[[rdma.fault]]\nkind = \"slow\"\nhca = 1\n"
                                                     "factor = 0.5\n")));
  Json context = contextFor("sim", "gpu0", path.string());
  context.update({{"scope", "node"}, {"rank", 0}, {"world_size", 2}});
  Json params = {{"from", "1 GiB"}, {"to", "1 GiB"}};
  ASSERT_EQ(plugin_.run(host, "sweep", params, context).ran, MUSTER_OK) << host.error;
  EXPECT_EQ(host.told("transport").at(0).text, "nvlink");
  EXPECT_TRUE(host.told("nic_line_rate_share").empty());

  RecordingHost forced;
  params["fabric"] = "ib-forced";
  ASSERT_EQ(plugin_.run(forced, "sweep", params, context).ran, MUSTER_OK) << forced.error;
  plugin_.expectDeclared(forced, "sweep");
  EXPECT_EQ(forced.told("transport").at(0).text, "ib+gdr");
  EXPECT_NEAR(forced.told("nic_line_rate_share").at(0).samples.at(0), 0.4, 0.01)
      << "the slow HCA, 20 of 50 GB/s";
}

TEST_F(AutoFabric, ForcedIsSkippedWithoutNics) {
  RecordingHost host;
  const auto path = folder_.write("bare.toml", scenarioText("[network]\nintra_bandwidth = \"400 GB/s\"\n"
                                                            "rail_bandwidth = \"40 GB/s\"\n"));
  Json context = contextFor("sim", "gpu0", path.string());
  context.update({{"scope", "node"}, {"rank", 0}, {"world_size", 2}});
  EXPECT_EQ(plugin_.run(host, "sweep", {{"fabric", "ib-forced"}}, context).ran, MUSTER_UNSUPPORTED);
  EXPECT_THAT(host.error, HasSubstr("found no RDMA device"));
}

}  // namespace
}  // namespace muster::testing
