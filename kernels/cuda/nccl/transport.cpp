// SPDX-License-Identifier: Apache-2.0
// Names of transports, and the evidence for each.
#include "kernels/cuda/nccl/transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "runner/core/text.h"
#include "runner/core/units.h"

namespace muster::cuda {
namespace {

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string p2pName(const NcclLog& log) {
  if (log.mnnvl) return "mnnvl";
  if (log.graphs.empty()) return "p2p";
  // Every graph has to run over NVLink: one that does not takes another way for some algorithm.
  const auto overNvlink = [](const NcclLog::Graph& graph) {
    return graph.inside == "NVL" || graph.inside == "NVB" || graph.inside == "C2C" || graph.inside == "LOC";
  };
  const bool all = std::all_of(log.graphs.begin(), log.graphs.end(),
                               [&](const auto& graph) { return graph.channels == 0 || overNvlink(graph); });
  return all ? "nvlink" : "pcie-p2p";
}

/// The HCA of "NET/IB/3" or "NET/IB/3(7)/GDRDMA"; none where the log did not list it.
const NcclLog::Hca* hcaOf(const std::string& connection, const NcclLog& log) {
  const std::vector<std::string> parts = split(connection, '/');
  if (parts.size() < 3 || parts[2].empty() || std::isdigit(static_cast<unsigned char>(parts[2][0])) == 0)
    return nullptr;
  const auto found = log.hcas.find(std::atoi(parts[2].c_str()));
  return found == log.hcas.end() ? nullptr : &found->second;
}

std::string netName(const std::string& connection, const NcclLog& log) {
  const std::vector<std::string> parts = split(connection, '/');
  const std::string plugin = parts.size() > 1 ? parts[1] : "";
  if (plugin == "Socket") return "socket";
  if (plugin != "IB") return plugin.empty() ? "net" : lower(plugin);
  const NcclLog::Hca* hca = hcaOf(connection, log);
  if (hca == nullptr) return "ib-or-roce";
  return hca->kind == "RoCE" ? "roce" : "ib";
}

/// Whether hardware counts the bytes of a transport, and under which names.
bool counts(const std::string& transport, const std::string& counter) {
  const bool nic = counter.find(':') != std::string::npos;
  if (transport == "nvlink" || transport == "mnnvl") return counter == "nvlink";
  if (transport == "socket") return !nic && counter != "nvlink";
  if (transport.starts_with("ib") || transport.starts_with("roce")) return nic;
  return false;
}

TransportUse useOf(const std::string& transport, const std::string& said, const SentBytes& sent,
                   double queued) {
  TransportUse use;
  use.transport = transport;
  std::vector<std::string> counters;
  for (const auto& [name, bytes] : sent) {
    if (bytes <= 0 || !counts(transport, name)) continue;
    use.bytes += bytes;
    counters.push_back(fmt::format("{} sent {}", name, formatQuantity(bytes, "B")));
  }
  if (counters.empty()) {
    use.bytes = queued;
    counters.push_back(
        fmt::format("no counter to read, {} queued by this rank", formatQuantity(queued, "B")));
  }
  use.evidence = fmt::format("NCCL's log: {}; {}", said, join(counters, ", "));
  return use;
}

}  // namespace

std::string transportOf(const std::string& connection, const NcclLog& log) {
  const std::string gdr = connection.find("GDRDMA") != std::string::npos ? "+gdr" : "";
  if (connection.starts_with("P2P/")) return p2pName(log);
  if (connection.starts_with("SHM")) return "shm";
  if (connection.starts_with("NET/")) return netName(connection, log) + gdr;
  if (connection.starts_with("COLLNET/")) return "collnet-" + netName(connection, log) + gdr;
  return lower(split(connection, '/')[0]);
}

std::vector<TransportUse> transportsSince(const NcclLog& before, const NcclLog& now, const SentBytes& sent,
                                          double queued) {
  std::map<std::string, std::vector<std::string>> said;
  for (const auto& [connection, count] : now.connections) {
    const auto earlier = before.connections.find(connection);
    const uint64_t made = count - (earlier == before.connections.end() ? 0 : earlier->second);
    if (made > 0) said[transportOf(connection, now)].push_back(fmt::format("{} x {}", made, connection));
  }
  std::vector<TransportUse> uses;
  for (const auto& [transport, connections] : said)
    uses.push_back(useOf(transport, join(connections, ", "), sent, queued));
  std::stable_sort(uses.begin(), uses.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return uses;
}

std::string describe(const NcclLog& log) {
  std::vector<std::string> parts;
  if (log.channels > 0) parts.push_back(fmt::format("{} channels", log.channels));
  parts.push_back(log.nvls ? fmt::format("NVLS with {} channels", log.nvlsChannels) : "no NVLS");
  return join(parts, ", ");
}

}  // namespace muster::cuda
