// SPDX-License-Identifier: Apache-2.0
// Which network interface a group talks through, and what that interface has carried.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernels/interfaces/communicator.h"

namespace muster::host {

/// A local address to talk through.
struct Endpoint {
  std::string interface;  ///< "eth0"
  std::string address;    ///< numeric, IPv4 where the interface has one
};

/// Interface or address `wanted`; where it is empty: loopback if all ranks share this network namespace, else
/// the interface of the default route, else the only other one that is up. More than one is an error that
/// lists them.
Result<Endpoint> chooseEndpoint(const std::string& wanted, bool allOnThisHost);

/// What tells one network namespace of one running system from every other.
std::string networkIdentity();

struct Traffic {
  uint64_t received = 0;  ///< bytes
  uint64_t sent = 0;
};
/// The kernel's byte counters of each interface, from `root`.
std::map<std::string, Traffic> readTraffic(const std::string& root = "/sys/class/net");
/// What was carried between two readings, by interface; an interface that is not in both is left out.
std::map<std::string, Traffic> carried(const std::map<std::string, Traffic>& before,
                                       const std::map<std::string, Traffic>& after);

}  // namespace muster::host
