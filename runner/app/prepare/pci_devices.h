// SPDX-License-Identifier: Apache-2.0
// PCI devices of this machine: needs no driver.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace muster {

/// How many devices of each PCI id ("10de:2330") the kernel lists in `folder`, /sys/bus/pci/devices.
std::map<std::string, int> pciDevices(const std::filesystem::path& folder);

}  // namespace muster
