// SPDX-License-Identifier: Apache-2.0
// The pairs of one rail: schedule and rendezvous; the GPU of each.
#include "plugins/rdma/rails.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <tuple>

#include "runner/core/majority.h"
#include "runner/core/text.h"
#include "runner/system/files.h"

namespace muster::rdma {
namespace {

constexpr std::array kDistances = {"PIX", "PXB", "PHB", "NODE", "SYS"};  ///< the nearest first

std::string distanceOf(const DeviceInfo& gpu, const RdmaPort& port, const Json& topology) {
  for (const Json& from : topology)
    if (from.value("device", "") == gpu.id && from.contains("near") && from["near"].contains(port.device))
      return from["near"].value(port.device, "SYS");
  return gpu.numaNode >= 0 && gpu.numaNode == port.numaNode ? "NODE" : "SYS";
}

auto placesApart(const std::string& distance) {
  return std::find(kDistances.begin(), kDistances.end(), distance) - kDistances.begin();
}

}  // namespace

std::vector<std::vector<NodePair>> ringRounds(int nodes) {
  if (nodes < 2) return {};
  std::vector<std::vector<NodePair>> rounds(nodes % 2 == 0 ? 2 : 3);
  for (int i = 0; i < nodes; ++i) {
    const bool closesOddRing = nodes % 2 == 1 && i == nodes - 1;
    rounds[closesOddRing ? 2 : static_cast<size_t>(i % 2)].push_back({i, (i + 1) % nodes});
  }
  return rounds;
}

std::vector<NearGpu> nearestGpus(const std::vector<RdmaPort>& ports, const std::vector<DeviceInfo>& gpus,
                                 const Json& topology) {
  std::vector<NearGpu> chosen;
  std::vector<int> taken(gpus.size(), 0);
  for (const RdmaPort& port : ports) {
    size_t best = 0;
    const auto rank = [&](size_t gpu) {
      return std::tuple(placesApart(distanceOf(gpus[gpu], port, topology)), taken[gpu], gpu);
    };
    for (size_t gpu = 1; gpu < gpus.size(); ++gpu)
      if (rank(gpu) < rank(best)) best = gpu;
    ++taken[best];
    chosen.push_back({gpus[best].index, gpus[best].id, distanceOf(gpus[best], port, topology)});
  }
  return chosen;
}

Status StoreMeeting::announce(int tcpPort) {
  return store_.set(key_, fmt::format("{} {}", address_, tcpPort));
}

Result<std::pair<std::string, int>> StoreMeeting::await(double timeout) {
  MUSTER_TRY(const std::string text, store_.get(key_, timeout));
  const std::vector<std::string> parts = split(text, ' ');
  int port = 0;
  const bool isPlace =
      parts.size() == 2 && !parts[0].empty() && parts[0][0] != '-' &&
      std::from_chars(parts[1].data(), parts[1].data() + parts[1].size(), port).ec == std::errc{};
  if (!isPlace || port < 1 || port > 65535)
    return Error{ErrorCode::kPeer,
                 "the other side announced " + quoted(text, 80) + ", expected host and port", key_};
  return std::pair(parts[0], port);
}

Status compareRails(const Site& site, const std::string& caseName, size_t ports, double timeout) {
  const auto keyOf = [&](int node) { return fmt::format("{}/rails/{}", caseName, node); };
  const std::string own = std::to_string(ports);
  sdk::HostStore store(site.host);
  if (site.localRank == 0) MUSTER_CHECK_OK(store.set(keyOf(site.nodeRank), own));
  std::vector<std::string> others;
  std::map<std::string, size_t> nodesWith;  // by number of ports
  for (int node = 0; node < site.nodeCount; ++node) {
    MUSTER_TRY(const std::string count, store.get(keyOf(node), timeout));
    if (count != own) others.push_back(fmt::format("node {} has {}", node, quoted(count, 16)));
    ++nodesWith[count];
  }
  if (others.empty()) return {};
  bool isInMajority = isMajority(nodesWith[own], static_cast<size_t>(site.nodeCount));
  for (const auto& [count, nodes] : nodesWith) {  // one that has more is well
    size_t number = 0;
    const auto read = std::from_chars(count.data(), count.data() + count.size(), number);
    isInMajority = isInMajority && read.ec == std::errc{} && number <= ports;
  }
  return Error{
      isInMajority ? ErrorCode::kPeer : ErrorCode::kNotFound,
      fmt::format("this node (rank {}) has {} RDMA ports in use, but {}; the rails of a cluster must match: "
                  "name the ports in `hcas`",
                  site.nodeRank, own, join(others, ", ")),
      ""};
}

Result<std::string> ownAddress(const std::string& interface) {
  char name[256] = {};
  if (interface.empty()) {
    if (gethostname(name, sizeof name - 1) == 0) return std::string(name);
    return Error{ErrorCode::kIo, "this host has no name: " + errnoText(errno), ""};
  }
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0)
    return Error{ErrorCode::kIo, "cannot list network interfaces: " + errnoText(errno), ""};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owned(list, freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (interface != entry->ifa_name || entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET)
      continue;
    const auto* address = reinterpret_cast<const sockaddr_in*>(entry->ifa_addr);
    if (inet_ntop(AF_INET, &address->sin_addr, name, sizeof name) != nullptr) return std::string(name);
  }
  return Error{ErrorCode::kNotFound,
               "there is no network interface \"" + printable(interface, 32) +
                   "\" with an IPv4 address; see ip -4 address",
               "interface"};
}

}  // namespace muster::rdma
