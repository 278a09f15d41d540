// SPDX-License-Identifier: Apache-2.0
// Network interfaces and RDMA devices, from sysfs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/host/inventory/root.h"
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

/// One port of an RDMA device.
struct RdmaPort {
  std::string device;  ///< mlx5_0
  int port = 1;
  std::string state;     ///< "ACTIVE"
  std::string physical;  ///< "LinkUp"
  std::string layer;     ///< InfiniBand or Ethernet
  std::string rate;      ///< "400 Gb/sec (4X NDR)"
  std::string firmware;
  double bytesPerSecond = 0;
  int numaNode = -1;
  int64_t errors = 0;  ///< symbol errors, link downed, receive errors: sum of the port's error counters
};

std::vector<Nic> readNics(const Root& root);
std::vector<RdmaPort> readRdmaPorts(const Root& root);

Json toJson(const Nic& nic);
Json toJson(const RdmaPort& port);

}  // namespace muster
