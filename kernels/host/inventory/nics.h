// SPDX-License-Identifier: Apache-2.0
// Network interfaces and RDMA devices, from sysfs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/host/inventory/root.h"
#include "kernels/interfaces/rdma.h"
#include "runner/core/json.h"

namespace muster {

/// One network interface that belongs to a piece of hardware or is up; loopback is left out. No hardware
/// address: it identifies the customer's machine and judges nothing.
struct Nic {
  std::string name;
  std::string state;  ///< up, down, unknown ...
  std::string driver;
  std::string pciAddress;     ///< empty on a virtual one
  double bytesPerSecond = 0;  ///< line rate one way; 0: not told
  int64_t mtu = 0;
  int64_t errors = 0;  ///< receive and transmit errors since it came up
  int64_t dropped = 0;
  int numaNode = -1;
  bool hardware = false;
};

std::vector<Nic> readNics(const Root& root);
/// `sysfs` is where sysfs is mounted below `root`.
std::vector<RdmaPort> readRdmaPorts(const Root& root, const std::string& sysfs = "/sys");

Json toJson(const Nic& nic);

}  // namespace muster
