// SPDX-License-Identifier: Apache-2.0
// What sysfs says of PCI devices and the way between two of them.
#include "kernels/cuda/inventory/nvml/pci.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "runner/core/text.h"

namespace muster::cuda {
namespace {

constexpr const char* kDevices = "/sys/bus/pci/devices/";

int64_t totalOf(const Root& root, const std::string& path, const char* total) {
  const auto text = root.text(path, 4096);
  return text.ok() ? std::max<int64_t>(0, leadingInteger(fieldOf(*text, total), 0)) : 0;
}

}  // namespace

std::vector<std::string> nvidiaGpusOnBus(const Root& root) {
  std::vector<std::string> found;
  for (const std::string& address : root.list(kDevices)) {
    const std::string kind = root.factOr(kDevices + address + "/class");
    if (root.factOr(kDevices + address + "/vendor") == "0x10de" &&
        (kind.starts_with("0x0300") || kind.starts_with("0x0302")))
      found.push_back(address);
  }
  return found;
}

std::optional<AerCounts> readAer(const Root& root, const std::string& address) {
  const std::string folder = kDevices + address + "/aer_dev_";
  if (!root.exists(folder + "correctable")) return std::nullopt;
  return AerCounts{totalOf(root, folder + "correctable", "TOTAL_ERR_COR"),
                   totalOf(root, folder + "fatal", "TOTAL_ERR_FATAL") +
                       totalOf(root, folder + "nonfatal", "TOTAL_ERR_NONFATAL")};
}

std::vector<std::string> pciPath(const Root& root, const std::string& address) {
  std::error_code failure;
  const auto target = std::filesystem::read_symlink(root.prefix() + kDevices + address, failure);
  std::vector<std::string> path;
  for (const auto& part : target) {
    const std::string name = part.string();
    if (name.find(':') != std::string::npos) path.push_back(printable(name, 64));
  }
  return path;
}

std::string pciDistance(const std::vector<std::string>& a, int numaA, const std::vector<std::string>& b,
                        int numaB) {
  const auto differ = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  const auto common = differ.first - a.begin();
  if (common == 0) return numaA >= 0 && numaA == numaB ? "NODE" : "SYS";
  if (common == 1) return "PHB";
  // Below one switch each of the two is reached by its own downstream port.
  return a.end() - differ.first <= 2 && b.end() - differ.second <= 2 ? "PIX" : "PXB";
}

int pciNumaNode(const Root& root, const std::string& address) {
  return static_cast<int>(root.integerOr(kDevices + address + "/numa_node", -1));
}

std::optional<bool> iommuTranslates(const Root& root, const std::string& address) {
  const std::string type = root.factOr(kDevices + address + "/iommu_group/type");
  if (type.empty()) return std::nullopt;
  return type.starts_with("DMA");
}

Result<bool> redirectsPeers(const Root& root, const std::string& bridge) {
  constexpr size_t kExtended = 0x100;  // where extended capabilities begin
  constexpr unsigned kAcs = 0x0d, kRequestRedirect = 0x4, kCompletionRedirect = 0x8;  // PCIe 4.0, 7.7.8
  const std::string path = kDevices + bridge + "/config";
  std::ifstream file(root.prefix() + path, std::ios::binary);
  std::array<char, 4096> bytes{};
  file.read(bytes.data(), bytes.size());
  const auto size = static_cast<size_t>(file.gcount());
  if (size < kExtended)
    return Error{ErrorCode::kIo, "its capabilities can be read by root alone; run as root", path};
  const auto byte = [&](size_t at) { return static_cast<unsigned>(static_cast<unsigned char>(bytes[at])); };
  size_t at = kExtended;
  for (int steps = 0; steps < 128 && at >= kExtended && at + 8 <= size; ++steps) {
    const unsigned control = byte(at + 6) | byte(at + 7) << 8;
    if ((byte(at) | byte(at + 1) << 8) == kAcs)
      return (control & (kRequestRedirect | kCompletionRedirect)) != 0;
    at = (byte(at + 2) | byte(at + 3) << 8) >> 4;
  }
  return false;
}

}  // namespace muster::cuda
