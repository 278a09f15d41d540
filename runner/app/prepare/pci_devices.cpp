// SPDX-License-Identifier: Apache-2.0
// Reads the PCI devices that the kernel lists.
#include "runner/app/prepare/pci_devices.h"

#include "runner/core/text.h"
#include "runner/system/files.h"

namespace muster {
namespace fs = std::filesystem;
namespace {

/// "10de" of a file that holds "0x10de"; empty where there is none.
std::string idIn(const fs::path& file) {
  const auto text = readFile(file, 64);
  if (!text.ok()) return "";
  const std::string id(trim(*text));
  return id.starts_with("0x") ? lowerCase(id.substr(2)) : "";
}

}  // namespace

std::map<std::string, int> pciDevices(const fs::path& folder) {
  std::map<std::string, int> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string vendor = idIn(at->path() / "vendor"), device = idIn(at->path() / "device");
    if (!vendor.empty() && !device.empty()) ++found[vendor + ":" + device];
  }
  return found;
}

}  // namespace muster
