// SPDX-License-Identifier: Apache-2.0
// Network interfaces and RDMA ports of a made-up machine.
#include "kernels/host/inventory/nics.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/process.h"

namespace muster {
namespace {

using testing::TempDir;

TEST(Nics, ReadsStateRateAndErrors) {
  const TempDir dir;
  const std::string eth = "sys/class/net/eth0/";
  dir.write(eth + "operstate", "up\n");
  dir.write(eth + "speed", "25000\n");
  dir.write(eth + "mtu", "9000\n");
  dir.write(eth + "statistics/rx_errors", "3\n");
  dir.write(eth + "statistics/tx_errors", "4\n");
  std::filesystem::create_directories(dir.path() / "sys/devices/0000:18:00.0");
  std::filesystem::create_symlink("../../../devices/0000:18:00.0", dir.path() / eth / "device");
  const std::vector<Nic> nics = readNics(Root(dir.path()));
  ASSERT_EQ(nics.size(), 1u);
  EXPECT_EQ(nics[0].state, "up");
  EXPECT_EQ(nics[0].pciAddress, "0000:18:00.0");
  EXPECT_DOUBLE_EQ(nics[0].bytesPerSecond, 25e9 / 8);
  EXPECT_EQ(nics[0].errors, 7);
  EXPECT_EQ(toJson(nics[0])["rate"], "25 Gb/s");
}

TEST(Nics, LeavesOutLoopbackAndIdleVirtualOnesAndAlienFiles) {
  const TempDir dir;
  dir.write("sys/class/net/lo/operstate", "unknown");
  dir.write("sys/class/net/ifb0/operstate", "down");
  dir.write("sys/class/net/bonding_masters", "");
  dir.write("sys/class/net/br0/operstate", "up");
  dir.write("sys/class/net/br0/speed", "-1");
  const std::vector<Nic> nics = readNics(Root(dir.path()));
  ASSERT_EQ(nics.size(), 1u);
  EXPECT_EQ(nics[0].name, "br0");
  EXPECT_EQ(nics[0].bytesPerSecond, 0) << "-1 is no rate";
  EXPECT_FALSE(nics[0].hardware);
}

TEST(Nics, CarryNoHardwareAddress) {
  const TempDir dir;
  dir.write("sys/class/net/eth0/operstate", "up");
  dir.write("sys/class/net/eth0/address", "02:fc:00:00:00:01");
  EXPECT_EQ(dumpJson(toJson(readNics(Root(dir.path())).at(0))).find("02:fc"), std::string::npos);
}

TEST(Rdma, ReadsPorts) {
  const TempDir dir;
  const std::string port = "sys/class/infiniband/mlx5_0/ports/1/";
  dir.write(port + "state", "4: ACTIVE\n");
  dir.write(port + "phys_state", "5: LinkUp\n");
  dir.write(port + "rate", "400 Gb/sec (4X NDR)\n");
  dir.write(port + "link_layer", "InfiniBand\n");
  dir.write(port + "counters/symbol_error", "2\n");
  dir.write(port + "counters/link_downed", "1\n");
  dir.write("sys/class/infiniband/mlx5_0/fw_ver", "28.39.1002\n");
  dir.write("sys/class/infiniband/mlx5_0/node_guid", "1070:fd03:0076:1e9a\n");
  const std::vector<RdmaPort> ports = readRdmaPorts(Root(dir.path()));
  ASSERT_EQ(ports.size(), 1u);
  EXPECT_EQ(ports[0].state, "ACTIVE");
  EXPECT_EQ(ports[0].physical, "LinkUp");
  EXPECT_DOUBLE_EQ(ports[0].bytesPerSecond, 50e9);
  EXPECT_EQ(ports[0].errors, 3);
  EXPECT_EQ(toJson(ports[0])["name"], "mlx5_0/1");
  EXPECT_EQ(toJson(ports[0])["node_guid"], "1070:fd03:0076:1e9a");
}

TEST(Rdma, ReadsTheDevicesPcieLinkBesideWhatItCan) {
  const TempDir dir;
  const auto device = [&](const std::string& name, const std::vector<std::string>& values) {
    const std::string folder = "sys/class/infiniband/" + name;
    dir.write(folder + "/ports/1/state", "4: ACTIVE\n");
    dir.write(folder + "/ports/2/state", "4: ACTIVE\n");
    const char* files[] = {"current_link_width", "max_link_width", "current_link_speed", "max_link_speed"};
    for (size_t i = 0; i < values.size(); ++i) dir.write(folder + "/device/" + files[i], values[i] + "\n");
  };
  device("mlx5_0", {"16", "16", "32.0 GT/s PCIe", "32.0 GT/s PCIe"});
  device("mlx5_1", {"8", "16", "16.0 GT/s PCIe", "32 GT/s"});
  device("mlx5_2", {"0", "16", "Unknown", "32.0 GT/s PCIe"});
  device("mlx5_3", {"-8", "99999999999", "\x1b[2J GT/s", "1e300 GT/s"});
  device("mlx5_4", {});
  const std::vector<RdmaPort> ports = readRdmaPorts(Root(dir.path()));
  ASSERT_EQ(ports.size(), 10u);
  const std::vector<Reading> readings = pcieReadings(ports);
  ASSERT_EQ(readings.size(), 2u) << "one for each device that tells it, whatever its ports";
  EXPECT_EQ(readings[0].labels.at("hca"), "mlx5_0");
  EXPECT_DOUBLE_EQ(readings[0].value, 1);
  EXPECT_EQ(readings[1].labels.at("hca"), "mlx5_1");
  EXPECT_DOUBLE_EQ(readings[1].value, 0.25);
  EXPECT_EQ(readings[1].text, "x8 at 16 GT/s of x16 at 32 GT/s");
  EXPECT_EQ(toJson(ports[2])["pcie"], readings[1].text);
  EXPECT_FALSE(toJson(ports[9]).contains("pcie"));
}

TEST(Rdma, HostileFilesBecomeHarmlessFacts) {
  const TempDir dir;
  const std::string port = "sys/class/infiniband/mlx5_0/ports/1/";
  dir.write(port + "state", std::string(100'000, 'x'));
  dir.write(port + "rate", "\xff\xfe\x1b[2J");
  const std::vector<RdmaPort> ports = readRdmaPorts(Root(dir.path()));
  ASSERT_EQ(ports.size(), 1u);
  EXPECT_EQ(ports[0].state, "unknown");
  EXPECT_EQ(ports[0].rate.find('\x1b'), std::string::npos);
  EXPECT_EQ(ports[0].bytesPerSecond, 0);
}

}  // namespace
}  // namespace muster
