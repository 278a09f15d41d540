// SPDX-License-Identifier: Apache-2.0
// Which node meets which, and where they meet: the pairs of one rail; which GPU is near it.
#pragma once

#include <string>
#include <vector>

#include "plugins/rdma/site.h"
#include "plugins/sdk/group_store.h"

namespace muster::rdma {

/// One pair of nodes; `server` is the one that waits.
struct NodePair {
  int server = 0;
  int client = 0;
};

/// The edges of a ring over all nodes, in rounds in which no node is in two pairs: two rounds, three for an
/// odd number. Every node serves one neighbour and is the client of the other, so none is left out and each
/// has figures of its own (two nodes meet twice, once each way).
std::vector<std::vector<NodePair>> ringRounds(int nodes);

/// The GPU that holds the buffers of a port.
struct NearGpu {
  int index = -1;
  std::string id;
  std::string distance;  ///< in nvidia-smi's words: PIX, PXB, PHB, NODE or SYS
};

/// For each port the GPU that the fewest PCIe bridges part from it; of equally near ones the one that the
/// fewest ports before it have, then the first. `topology` is the inventory's: for each GPU how near the
/// others are. Without it NUMA nodes decide.
std::vector<NearGpu> nearestGpus(const std::vector<RdmaPort>& ports, const std::vector<DeviceInfo>& gpus,
                                 const Json& topology);

/// The stage's store as both sides of a pair use it. `key` names pair, rail and run.
class StoreMeeting : public RdmaMeeting {
 public:
  StoreMeeting(const sdk::Host& host, std::string key, std::string address)
      : store_(host), key_(std::move(key)), address_(std::move(address)) {}
  Status announce(int tcpPort) override;
  Result<std::pair<std::string, int>> await(double timeout) override;

 private:
  sdk::HostStore store_;
  std::string key_;
  std::string address_;
};

/// Writes what this node has and reads what each other one has; an error names the nodes whose number of
/// ports differs. kPeer where most nodes have as many as this one, and none has more.
Status compareRails(const Site& site, const std::string& caseName, size_t ports, double timeout);

/// The IPv4 address of a network interface, or this host's name where `interface` is empty.
Result<std::string> ownAddress(const std::string& interface);

}  // namespace muster::rdma
