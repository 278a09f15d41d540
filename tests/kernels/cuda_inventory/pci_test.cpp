// SPDX-License-Identifier: Apache-2.0
// PCI devices as a made-up sysfs shows them: distances, error counters, IOMMU and Access Control Services.
#include "kernels/cuda/inventory/nvml/pci.h"

#include <gtest/gtest.h>

#include "kernels/cuda/inventory/node_facts.h"
#include "tests/support/process.h"

namespace muster::testing {
namespace {

using cuda::pciDistance;

/// A made-up sysfs with devices below bridges.
class Bus {
 public:
  /// "pci0000:15/0000:15:01.0/0000:18:00.0": every device on the way gets a folder and a link.
  void add(const std::string& path, int numaNode = -1) {
    std::string folder = "sys/devices";
    for (const auto& part : std::filesystem::path(path)) {
      folder += "/" + part.string();
      if (part.string().starts_with("pci")) continue;
      const auto link = dir_.path() / "sys/bus/pci/devices" / part;
      dir_.write(folder + "/numa_node", std::to_string(numaNode) + "\n");
      std::filesystem::create_directories(link.parent_path());
      if (!std::filesystem::is_symlink(link)) std::filesystem::create_symlink("../../../../" + folder, link);
    }
  }
  void file(const std::string& address, const std::string& name, const std::string& content) {
    dir_.write("sys/bus/pci/devices/" + address + "/" + name, content);
  }
  [[nodiscard]] Root root() const { return Root(dir_.path().string()); }
  [[nodiscard]] const TempDir& dir() const { return dir_; }

 private:
  TempDir dir_;
};

TEST(Pci, PathsListBridgesAndDevice) {
  Bus bus;
  bus.add("pci0000:15/0000:15:01.0/0000:16:00.0/0000:18:00.0", 1);
  EXPECT_EQ(cuda::pciPath(bus.root(), "0000:18:00.0"),
            (std::vector<std::string>{"pci0000:15", "0000:15:01.0", "0000:16:00.0", "0000:18:00.0"}));
  EXPECT_EQ(cuda::pciNumaNode(bus.root(), "0000:18:00.0"), 1);
  EXPECT_TRUE(cuda::pciPath(bus.root(), "0000:99:00.0").empty());
}

TEST(Pci, DistancesAreNvidiaSmis) {
  const std::vector<std::string> gpu{"pci0000:15", "r1", "up", "down1", "gpu"};
  EXPECT_EQ(pciDistance(gpu, 0, {"pci0000:15", "r1", "up", "down2", "nic"}, 0), "PIX");
  EXPECT_EQ(pciDistance(gpu, 0, {"pci0000:15", "r1", "up", "down2", "up2", "down3", "nic"}, 0), "PXB");
  EXPECT_EQ(pciDistance(gpu, 0, {"pci0000:15", "r2", "nic"}, 0), "PHB");
  EXPECT_EQ(pciDistance(gpu, 0, {"pci0000:37", "r9", "nic"}, 0), "NODE");
  EXPECT_EQ(pciDistance(gpu, 0, {"pci0000:97", "r9", "nic"}, 1), "SYS");
  EXPECT_EQ(pciDistance(gpu, -1, {"pci0000:97", "r9", "nic"}, -1), "SYS") << "unknown is not near";
}

TEST(Pci, AddsUpAdvancedErrors) {
  Bus bus;
  bus.add("pci0000:15/0000:18:00.0");
  EXPECT_FALSE(cuda::readAer(bus.root(), "0000:18:00.0").has_value());
  bus.file("0000:18:00.0", "aer_dev_correctable", "RxErr 3\nBadTLP 4\nTOTAL_ERR_COR 7\n");
  bus.file("0000:18:00.0", "aer_dev_nonfatal", "TLP 1\nTOTAL_ERR_NONFATAL 1\n");
  bus.file("0000:18:00.0", "aer_dev_fatal", "DLP 2\nTOTAL_ERR_FATAL 2\n");
  const auto counts = cuda::readAer(bus.root(), "0000:18:00.0");
  ASSERT_TRUE(counts.has_value());
  EXPECT_EQ(counts->correctable, 7);
  EXPECT_EQ(counts->uncorrectable, 3);
}

TEST(Pci, TellsTranslationFromPassThrough) {
  Bus bus;
  bus.add("pci0000:15/0000:18:00.0");
  EXPECT_FALSE(cuda::iommuTranslates(bus.root(), "0000:18:00.0").has_value());
  bus.file("0000:18:00.0", "iommu_group/type", "identity\n");
  EXPECT_EQ(cuda::iommuTranslates(bus.root(), "0000:18:00.0"), false);
  bus.file("0000:18:00.0", "iommu_group/type", "DMA-FQ\n");
  EXPECT_EQ(cuda::iommuTranslates(bus.root(), "0000:18:00.0"), true);
}

/// A configuration space with an Advanced Error Reporting capability, then Access Control Services.
std::string configSpace(unsigned control) {
  std::string bytes(4096, '\0');
  bytes[0x100] = 0x01;  // AER, version 1; the next one at 0x148
  bytes[0x102] = char(0x81);
  bytes[0x103] = 0x14;
  bytes[0x148] = 0x0d;
  bytes[0x14a] = 0x01;
  bytes[0x14e] = static_cast<char>(control);
  return bytes;
}

TEST(Pci, FindsBridgesThatRedirectPeers) {
  Bus bus;
  bus.add("pci0000:15/0000:15:01.0/0000:18:00.0");
  bus.file("0000:15:01.0", "config", configSpace(0x1d));
  EXPECT_TRUE(*cuda::redirectsPeers(bus.root(), "0000:15:01.0"));
  bus.file("0000:15:01.0", "config", configSpace(0x11));
  EXPECT_FALSE(*cuda::redirectsPeers(bus.root(), "0000:15:01.0"));
  bus.file("0000:15:01.0", "config", std::string(4096, '\0'));
  EXPECT_FALSE(*cuda::redirectsPeers(bus.root(), "0000:15:01.0")) << "no such capability";
  bus.file("0000:15:01.0", "config", std::string(64, '\0'));
  const auto partly = cuda::redirectsPeers(bus.root(), "0000:15:01.0");
  ASSERT_FALSE(partly.ok()) << "what only root may read is not known to be well";
  EXPECT_EQ(partly.error().code, ErrorCode::kIo);
}

TEST(Pci, ACapabilityListThatRunsInACircleEnds) {
  Bus bus;
  bus.add("pci0000:15/0000:15:01.0");
  std::string bytes = configSpace(0);
  bytes[0x148] = 0x01;
  bytes[0x14a] = 0x01;
  bytes[0x14b] = 0x10;  // back to 0x100
  bus.file("0000:15:01.0", "config", bytes);
  EXPECT_FALSE(*cuda::redirectsPeers(bus.root(), "0000:15:01.0"));
}

TEST(NodeFacts, TopologyNamesNearNicsAndGpus) {
  Bus bus;
  bus.add("pci0000:15/0000:15:01.0/0000:16:00.0/0000:16:01.0/0000:18:00.0", 0);
  bus.add("pci0000:15/0000:15:01.0/0000:16:00.0/0000:16:02.0/0000:19:00.0", 0);
  bus.add("pci0000:97/0000:97:01.0/0000:9a:00.0", 1);
  for (const auto& [name, address] : {std::pair{"mlx5_0", "0000:19:00.0"}, {"mlx5_1", "0000:9a:00.0"}}) {
    const auto folder = bus.dir().path() / "sys/class/infiniband" / name;
    std::filesystem::create_directories(folder);
    std::filesystem::create_symlink(std::string("../../../bus/pci/devices/") + address, folder / "device");
  }
  cuda::Gpu gpu;
  gpu.id = "gpu0";
  gpu.pciAddress = "0000:18:00.0";
  const Json topology = cuda::pciTopology(bus.root(), {gpu});
  ASSERT_EQ(topology.size(), 1u);
  EXPECT_EQ(topology[0]["bus_address"], "0000:18:00.0");
  EXPECT_EQ(topology[0]["numa_node"], 0);
  EXPECT_EQ(topology[0]["near"]["mlx5_0"], "PIX");
  EXPECT_EQ(topology[0]["near"]["mlx5_1"], "SYS");
}

TEST(NodeFacts, GpuDirectRdmaIsPeermemOrOpenModules) {
  const TempDir dir;
  const Root root(dir.path().string());
  EXPECT_EQ(cuda::gpuDirectRdma(root), "none");
  dir.write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.1\n");
  EXPECT_EQ(cuda::gpuDirectRdma(root), "none");
  dir.write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.1\n");
  EXPECT_EQ(cuda::gpuDirectRdma(root), "dma-buf");
  dir.write("sys/module/nvidia_peermem/refcnt", "0\n");
  EXPECT_EQ(cuda::gpuDirectRdma(root), "nvidia_peermem");
}

}  // namespace
}  // namespace muster::testing
